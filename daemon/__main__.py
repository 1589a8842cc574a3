"""``python -m yolofs.daemon``: what ``yolofs mount`` starts."""

from __future__ import annotations

import sys

from yolofs.daemon.main import main

if __name__ == "__main__":
    sys.exit(main())
