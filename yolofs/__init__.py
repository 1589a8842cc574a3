"""yolofs: a staging, time-travelling, gated filesystem for AI coding agents.

All packages but ``fuse``, ``daemon`` and ``cli`` are synchronous and need no mount: open a
:class:`yolofs.session.session.Session` and use it as a library.
"""

__version__ = "0.1.0.dev0"
