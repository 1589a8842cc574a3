"""Asks: each is answered, and noted."""
