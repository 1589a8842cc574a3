"""How ``--json`` spells things (``docs/reference/json.md``)."""

from __future__ import annotations

import stat
from typing import Any
from urllib.parse import quote_from_bytes

from yolofs.changes import Change, Side
from yolofs.regions import Regions

_TYPES = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "symlink",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
}


def text_fields(key: str, raw: bytes) -> dict[str, str]:
    """Return a path or name as ``key``; one that is not UTF-8 has an exact ``key_bytes`` too, percent-encoded."""
    try:
        return {key: raw.decode()}
    except UnicodeDecodeError:
        return {key: raw.decode(errors="replace"), f"{key}_bytes": quote_from_bytes(raw)}


def change_fields(change: Change, root: bytes, regions: Regions) -> dict[str, Any]:
    """Return a change with absolute paths, as the host names them."""
    fields: dict[str, Any] = {"kind": change.kind.value, **text_fields("path", absolute(root, change.path))}
    if change.old_path is not None:
        fields |= text_fields("old_path", absolute(root, change.old_path))
    fields["region"] = regions.of_all(change.paths).value
    for key, side in (("old", change.old), ("new", change.new)):
        if side is not None:
            fields[key] = _side_fields(side)
    fields["content"] = change.content
    fields["metadata"] = [aspect.value for aspect in change.metadata]
    fields["unseen_names"] = change.unseen_names
    fields["subtree"] = change.is_subtree
    return fields


def type_name(side: Side) -> str:
    """Return a file's type in a word."""
    return _TYPES.get(side.type, "file of an unknown type")


def absolute(root: bytes, path: bytes) -> bytes:
    """Return the absolute path of a path relative to base."""
    return (b"" if root == b"/" else root) + b"/" + path if path else root


def _side_fields(side: Side) -> dict[str, Any]:
    return {
        "type": type_name(side),
        "mode": f"{side.mode:04o}",
        "uid": side.uid,
        "gid": side.gid,
        "size": side.size,
        "mtime_ns": side.mtime_ns,
    }
