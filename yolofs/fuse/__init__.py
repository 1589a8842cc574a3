"""The mount: the device loop, the transports, and what carries requests out.

Only ``libfuse`` imports pyfuse3.
"""
