"""Carrying a plan out, finishing it after a crash, and taking it back."""
