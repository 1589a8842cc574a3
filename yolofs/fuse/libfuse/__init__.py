"""Between pyfuse3 and the handlers."""
