"""The mount: the device loop, and what translates between pyfuse3 and the core.  Only here is
pyfuse3 imported.
"""
