"""A patch in colours, which does a terminal no harm."""

from __future__ import annotations

import pytest

from yolofs.cli.show.patch_colour import PatchPainter


def painted(patch: bytes, size: int) -> bytes:
    """Return a patch painted from pieces of ``size`` bytes."""
    out = bytearray()
    painter = PatchPainter(out.extend)
    for at in range(0, len(patch), size):
        painter(patch[at : at + size])
    return bytes(out)


PATCH = b"""\
diff --git a/f b/f
--- a/f
+++ b/f
@@ -1,2 +1,2 @@ head
 same
--- not a header
+++ nor this
diff --git a/g b/g
"""


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_patch_is_coloured_line_by_line_whatever_the_pieces(size: int) -> None:
    bold, green, red, cyan, plain = b"\x1b[1m", b"\x1b[32m", b"\x1b[31m", b"\x1b[36m", b"\x1b[0m"
    assert painted(PATCH, size).splitlines() == [
        bold + b"diff --git a/f b/f" + plain,
        bold + b"--- a/f" + plain,
        bold + b"+++ b/f" + plain,
        cyan + b"@@ -1,2 +1,2 @@ head" + plain,
        b" same",
        red + b"--- not a header" + plain,
        green + b"+++ nor this" + plain,
        bold + b"diff --git a/g b/g" + plain,
    ]


def test_control_characters_are_made_visible() -> None:
    assert painted(b" \x00\t\x1b[31m\x7f\xc2\x9b\xc3\xa9\n", 100) == b" ^@\t^[[31m^?<9b>\xc3\xa9\n"
