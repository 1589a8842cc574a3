"""The daemon: the process that hosts a mount and answers the commands that go to it.

Only :mod:`~yolofs.daemon.server` and :mod:`~yolofs.daemon.main` import trio; commands use
:mod:`~yolofs.daemon.client` and :mod:`~yolofs.daemon.launch`, which start fast.
"""
