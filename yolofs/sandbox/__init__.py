"""The sandbox around a command: what bubblewrap is told, what the kernel refuses there, and what is
started in it.

Pure: nothing here starts a process or looks at a session.
"""
