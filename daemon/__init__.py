"""The daemon: the process that hosts a mount and answers the commands that go to it.

Commands use :mod:`yolofs.daemon.rpc` alone, and of that what does without trio: starting it takes
long.
"""
