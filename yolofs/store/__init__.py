"""Where data lies: base, read-only, and the store of what is staged, which keeps what is read."""
