"""Which transport a mount gets."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from yolofs.errors import MountError

if TYPE_CHECKING:
    from yolofs.fuse.direct.transport import DirectTransport
    from yolofs.fuse.libfuse.transport import Pyfuse3Transport

Setting: TypeAlias = Literal["auto", "direct", "pyfuse3"]
"""The values of ``mount.transport``."""

TransportClass: TypeAlias = "type[DirectTransport | Pyfuse3Transport]"
"""Each makes a :class:`yolofs.fuse.transport.Transport`."""

TRANSPORT_VARIABLE: Final = "YOLOFS_TRANSPORT"
"""The environment variable that says what "auto" is; the tests of the other one set it."""

_AUTO: Final = "direct"


def transport_for(setting: Setting = "auto") -> TransportClass:
    """Return the class of a transport.

    Raises:
        MountError: there is no such transport, or pyfuse3 is not installed.
    """
    name = os.environ.get(TRANSPORT_VARIABLE, _AUTO) if setting == "auto" else setting
    if name == "direct":
        from yolofs.fuse.direct.transport import DirectTransport

        return DirectTransport
    if name != "pyfuse3":
        raise MountError(f"there is no transport {name!r}", hint='set mount.transport to "auto", "direct" or "pyfuse3"')
    try:
        from yolofs.fuse.libfuse.transport import Pyfuse3Transport
    except ImportError as error:
        hint = "pip install 'yolofs[pyfuse3]', or set mount.transport to \"auto\""
        raise MountError(f"pyfuse3 cannot be used: {error}", hint=hint) from error
    return Pyfuse3Transport
