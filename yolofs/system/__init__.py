"""The operating system: system calls, mounts, programs of the host, plain files."""
