"""What differs between two states, and how a patch says it."""
