"""The control socket, from both ends: what the commands share with the daemon."""
