"""Which transport the tests run on: what the other one can do less, or differently, is told apart
by this.
"""

from __future__ import annotations

from yolofs.fuse.direct.transport import DirectTransport
from yolofs.fuse.transport_choice import transport_for

IS_DIRECT = transport_for() is DirectTransport
