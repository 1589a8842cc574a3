"""Hunks as lines for people, and as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from yolofs.changes.hunks import Hunk, HunkKind
from yolofs.cli.output import paint
from yolofs.cli.show.json_forms import text_fields
from yolofs.cli.show.listing import PathDisplay
from yolofs.cli.show.patch_colour import visible
from yolofs.paths import absolute, display
from yolofs.text.line_diff import joined
from yolofs.text.percent import quote_from_bytes

_COLOURS = {
    HunkKind.ADDED: "green",
    HunkKind.DELETED: "red",
    HunkKind.RENAMED: "cyan",
    HunkKind.TYPE: "magenta",
    HunkKind.TEXT: "yellow",
    HunkKind.BINARY: "yellow",
}
_LINES_AT_A_TIME = 4096
_KIND_CHARS = max(len(kind.value) for kind in HunkKind)


def hunk_fields(hunk: Hunk, root: bytes) -> dict[str, Any]:
    """Return a hunk with absolute paths, as the host names them."""
    fields: dict[str, Any] = {"id": hunk.id, "kind": hunk.kind.value, **text_fields("path", absolute(root, hunk.path))}
    if hunk.old_path is not None:
        fields |= text_fields("old_path", absolute(root, hunk.old_path))
    fields |= {"old_start": hunk.old_start, "new_start": hunk.new_start}
    fields |= _lines_fields("old_lines", hunk.old_lines) | _lines_fields("new_lines", hunk.new_lines)
    return {**fields, "old": hunk.old, "new": hunk.new, "splittable": hunk.is_splittable}


def _lines_fields(key: str, lines: tuple[bytes, ...]) -> dict[str, list[str]]:
    """Return lines with their ends as ``key``; if one is not UTF-8 all of them stand exactly in
    ``key_bytes``, too.
    """
    fields = {key: [line.decode(errors="replace") for line in lines]}
    try:
        for line in lines:
            line.decode()
    except UnicodeDecodeError:
        fields[f"{key}_bytes"] = [quote_from_bytes(line) for line in lines]
    return fields


def title(hunk: Hunk, path_display: PathDisplay) -> str:
    """Return a hunk in one line, without its id: its kind, its path, and where or what."""
    path = path_display.show_path(hunk.path)
    if hunk.kind is HunkKind.RENAMED and hunk.old_path is not None:
        path = f"{path_display.show_path(hunk.old_path)} -> {path}"
    kind = paint(hunk.kind.value.ljust(_KIND_CHARS), _COLOURS.get(hunk.kind, "blue"))
    return f"{kind}  {path}{_details(hunk)}"


def _details(hunk: Hunk) -> str:
    if hunk.kind is HunkKind.TEXT:
        return f"  @@ -{_range(hunk.old_start, len(hunk.old_lines))} +{_range(hunk.new_start, len(hunk.new_lines))} @@"
    if hunk.kind in (HunkKind.ADDED, HunkKind.DELETED) and hunk.line_count:
        return f"  {hunk.line_count} line{'s' if hunk.line_count > 1 else ''}"
    if hunk.old or hunk.new:
        return f"  {display(hunk.old.encode())} -> {display(hunk.new.encode())}"
    return ""


def _range(start: int, count: int) -> str:
    return str(start + 1) if count == 1 else f"{start + 1 if count else start},{count}"


def changed_lines(hunk: Hunk) -> Iterator[bytes]:
    """Yield its changed lines as a terminal may get them, with ``-`` or ``+`` before each and an
    end; many at a time, as a text may have millions.
    """
    for mark, colour, lines in ((b"-", "red", hunk.old_lines), (b"+", "green", hunk.new_lines)):
        begin, end = (painted.encode() for painted in paint(f"{mark.decode()}\n", colour).split("\n"))
        between = end + b"\n" + begin
        for at in range(0, len(lines), _LINES_AT_A_TIME):
            text = visible(joined(lines[at : at + _LINES_AT_A_TIME]))
            yield begin + text.removesuffix(b"\n").replace(b"\n", between) + end + b"\n"
        if lines and not lines[-1].endswith(b"\n"):
            yield b"\\ No newline at end of file\n"
