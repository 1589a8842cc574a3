"""The daemon: the process that hosts a mount and answers the commands that go to it.

Only :mod:`~yolofs.daemon.rpc.server` and :mod:`~yolofs.daemon.main` import trio; commands use
:mod:`~yolofs.daemon.rpc.client` and :mod:`~yolofs.daemon.rpc.launch`, which start fast.
"""
