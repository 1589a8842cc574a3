"""Which transport the tests run on: what the other one can do less, or differently, is told apart
by this.
"""

from __future__ import annotations

from yolofs.fuse.choice import transport_for
from yolofs.fuse.direct.transport import DirectTransport

IS_DIRECT = transport_for() is DirectTransport
