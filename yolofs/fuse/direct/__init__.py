"""The kernel's FUSE protocol, spoken directly: no libfuse, nothing to compile."""
