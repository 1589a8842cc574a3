"""The commands: arguments, printing and prompts.  Everything else is asked of the packages
below.
"""
