"""The session's history at the command line: which generation, range or version is meant, what
differs between two of them, what happened then, and bringing it back.
"""
