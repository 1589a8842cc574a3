"""Finishing a commit that a crash interrupted, and taking one back."""
