"""The device loop: the one thread that owns all state, and what it waits with."""
