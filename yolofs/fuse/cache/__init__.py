"""What the kernel may keep, for how long, and how it is made to forget."""
