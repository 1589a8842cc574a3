"""How ``--json`` spells things (``docs/reference/json.md``)."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from yolofs.changes.changes import Change, Side
from yolofs.paths import absolute
from yolofs.state.regions import Regions
from yolofs.text.json_text import command_fields, text_fields

__all__ = ["change_fields", "command_fields", "host_code_fields", "text_fields", "type_name"]

if TYPE_CHECKING:
    from yolofs.hostcode.mark import Marks

_TYPES = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "symlink",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
}


def change_fields(change: Change, root: bytes, regions: Regions, marks: Marks) -> dict[str, Any]:
    """Return a change with absolute paths, as the host names them."""
    fields: dict[str, Any] = {"kind": change.kind.value, **text_fields("path", absolute(root, change.path))}
    if change.old_path is not None:
        fields |= text_fields("old_path", absolute(root, change.old_path))
    fields["region"] = regions.of_all(change.paths).value
    for key, side in (("old", change.old), ("new", change.new)):
        if side is not None:
            fields[key] = side_fields(side)
    fields["content"] = change.content
    fields["metadata"] = [aspect.value for aspect in change.metadata]
    fields["unseen_names"] = change.unseen_names
    fields["subtree"] = change.is_subtree
    fields["marks"] = [mark.value for mark in marks.get(change.path, ())] if change.new is not None else []
    return fields


def host_code_fields(changes: Iterable[Change], root: bytes, marks: Marks) -> list[dict[str, Any]]:
    """Return those of some changes that give the host something to run or to go by, with the
    reasons.
    """
    return [
        {**text_fields("path", absolute(root, change.path)), "marks": [mark.value for mark in marks[change.path]]}
        for change in changes
        if change.path in marks and change.new is not None
    ]


def type_name(side: Side) -> str:
    """Return a file's type in a word."""
    return _TYPES.get(side.type, "file of an unknown type")


def side_fields(side: Side) -> dict[str, Any]:
    """Return the attributes of one side of a change, or of a file of a state."""
    return {
        "type": type_name(side),
        "mode": f"{side.mode:04o}",
        "uid": side.uid,
        "gid": side.gid,
        "size": side.size,
        "mtime_ns": side.mtime_ns,
    }
