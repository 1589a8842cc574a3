"""The screens on which asks are answered."""
