"""yolofs: a staging, time-travelling, gated filesystem for AI coding agents.

The core (every module here except the subpackages ``fuse``, ``daemon`` and ``cli``) is synchronous
and needs no mount: open a :class:`yolofs.session.session.Session` and use it as a library.
"""

__version__ = "0.1.0.dev0"
