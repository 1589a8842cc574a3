"""What the user tells the agent, as lines and for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from yolofs.cli.guard import PathGuard
from yolofs.cli.output import local_time
from yolofs.cli.show.json_forms import text_fields
from yolofs.cli.show.listing import PathDisplay
from yolofs.paths import RelPath, absolute
from yolofs.session.feedback import Dropped, Item
from yolofs.text.characters import harmless


def lines_of(items: Iterable[Item], path_display: PathDisplay, guard: PathGuard | None) -> Iterator[str]:
    """Yield lines about dropped changes and the user's notes; paths that ``guard`` hides are left
    out.
    """
    for item, things in _seen(items, path_display.root, guard):
        yield f"the user has dropped these changes ({local_time(item.time_ns)}):"
        for thing in things:
            yield f"  {thing.kind}  {path_display.show_path(thing.path)}"
            if guard is None or guard.may_read(absolute(path_display.root, thing.path)):
                yield from (f"    {_shown(line)}" for line in thing.lines)
                if thing.more_lines:
                    yield f"    … and {thing.more_lines} more line{'s' if thing.more_lines > 1 else ''}"
        if item.more_things:
            yield f"  … and {item.more_things} more"
        if item.note:
            yield f"  the user says: {item.note}"


def _shown(line: bytes) -> str:
    return harmless(line.decode(errors="surrogateescape").expandtabs(4))


def item_fields(items: Iterable[Item], root: bytes, guard: PathGuard | None) -> list[dict[str, Any]]:
    """Return items of feedback for a JSON document."""
    return [
        {
            "number": item.number,
            "time_ns": item.time_ns,
            "note": item.note,
            "dropped": [_thing_fields(thing, root, guard) for thing in things],
            "more": item.more_things,
        }
        for item, things in _seen(items, root, guard)
    ]


def _thing_fields(thing: Dropped, root: bytes, guard: PathGuard | None) -> dict[str, Any]:
    path = absolute(root, thing.path)
    lines = thing.lines if guard is None or guard.may_read(path) else ()
    fields: dict[str, Any] = {"kind": thing.kind, **text_fields("path", path)}
    if thing.old_path is not None:
        fields |= text_fields("old_path", absolute(root, thing.old_path))
    return fields | {"lines": [line.decode(errors="replace") for line in lines], "more_lines": thing.more_lines}


def _seen(items: Iterable[Item], root: bytes, guard: PathGuard | None) -> Iterator[tuple[Item, Sequence[Dropped]]]:
    for item in items:
        things = [thing for thing in item.things if guard is None or all(map(guard.may_see, _paths(thing, root)))]
        if things:
            yield item, things


def _paths(thing: Dropped, root: bytes) -> list[bytes]:
    paths = [thing.path] if thing.old_path is None else [thing.old_path, thing.path]
    return [absolute(root, RelPath(path)) for path in paths]
