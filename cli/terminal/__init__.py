"""The user's terminal: long output through a pager, a program that has the terminal until it ends,
and keys and lines of a whole screen.
"""
