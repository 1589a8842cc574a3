"""The kernel's table of mounts, line by line (``/proc/PID/mountinfo``, proc(5))."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def mounted_paths(lines: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the path and the filesystem type of each line of ``/proc/self/mountinfo``.

    A path may come several times; what is mounted there last is what one sees.  Format: proc(5).
    """
    for line in lines:
        fields, _, rest = line.partition(b" - ")
        yield unescape(fields.split(b" ")[4]), rest.split(b" ", 1)[0]


def unescape(field: bytes) -> bytes:
    """Undo the octal escapes of a path in mountinfo (space, tab, newline, backslash)."""
    if b"\\" not in field:
        return field
    pieces = field.split(b"\\")
    return pieces[0] + b"".join(bytes([int(piece[:3], 8)]) + piece[3:] for piece in pieces[1:])
