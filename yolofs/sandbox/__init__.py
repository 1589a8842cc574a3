"""The sandbox around a command: bubblewrap's arguments, the filter of system calls, the native
binds, and the start and end of the command.

Nothing here looks at a session.
"""
