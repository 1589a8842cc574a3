"""A mark for tests that count or replace calls within the core.

Compiled functions call each other directly, so nothing can be put between them.  Everything else is
tested on both cores.
"""

from __future__ import annotations

import pytest

from yolofs.compiled import is_compiled

core_in_python = pytest.mark.skipif(is_compiled(), reason="nothing can be put between compiled functions")
