"""The commands: their arguments, what they print and what they ask the user.  Everything else is
left to the packages below.
"""
