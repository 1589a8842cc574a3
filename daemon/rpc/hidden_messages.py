"""The question which of some paths the rules hide, as it goes over the control socket
(``docs/reference/rpc.md``).

Paths are absolute, and travel percent-encoded.
"""

import msgspec

from yolofs.daemon.rpc.protocol import unquote
from yolofs.errors import UsageError

MOST_PATHS = 1000
"""How many paths one message may ask about."""


class HiddenParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of ``hidden``: at most :data:`MOST_PATHS` paths."""

    paths: tuple[str, ...]


class HiddenResult(msgspec.Struct, frozen=True):
    """The result of ``hidden``: which of the paths programs in the view may not know of, by their
    places in the list, from 0.
    """

    hidden: tuple[int, ...]


def asked_paths(params: HiddenParams) -> list[bytes]:
    """Return the paths of a ``hidden``.

    Raises:
        UsageError: they are too many, or one of them is no absolute path.
    """
    if len(params.paths) > MOST_PATHS:
        raise UsageError(f"{len(params.paths)} paths are too many for one message", hint=f"at most {MOST_PATHS}")
    paths = [unquote(path) for path in params.paths]
    if any(not path.startswith(b"/") for path in paths):
        raise UsageError("a path is not absolute")
    return paths
