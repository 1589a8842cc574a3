"""The sandbox around a command: what bubblewrap is told, what the kernel refuses in it, what it
gets straight from base, and how a command in it is started and ended.

Nothing here looks at a session.
"""
