"""The project at hand: which one a command is about, the way to its daemon, and its session, opened
the right way.
"""
