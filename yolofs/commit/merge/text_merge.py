"""Merging a text that is staged with what base has: by git's ``merge-file``, or by :mod:`yolofs.commit.merge.diff3`.

git gets files of our own in a private directory, and no name from the tree; it finds no repository, no configuration
and no attributes.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from typing import NamedTuple

from yolofs.commit.merge import diff3
from yolofs.state.kept_bases import MOST_KEPT_BYTES
from yolofs.system.host_programs import find_program
from yolofs.text.git_binary import is_binary
from yolofs.text.line_diff import split_lines

MOST_MERGED_BYTES = MOST_KEPT_BYTES
"""A larger text is not merged: two such texts without a line in common take seconds."""
_OURS, _THEIRS = b"staged", b"base"
_BEGIN, _BETWEEN, _END = b"<<<<<<< " + _OURS, b"=======", b">>>>>>> " + _THEIRS
_GIT_TIMEOUT_S = 60
_MOST_GIT_CONFLICTS = 127


class Merged(NamedTuple):
    """A merged text."""

    content: bytes
    conflicts: int
    """How many places have marks around what either side has."""


def why_not_text(*contents: bytes) -> str:
    """Return why some contents cannot be merged, an empty string if they can."""
    if any(len(content) > MOST_MERGED_BYTES for content in contents):
        return f"it has more than {MOST_MERGED_BYTES >> 20} MiB"
    return "it is no text" if any(map(is_binary, contents)) else ""


def merge_texts(ours: bytes, was: bytes | None, theirs: bytes) -> Merged:
    """Merge what is staged and what base has, against what the text was; None: both were made anew.

    Blocks, for a second or so where texts are large and have little in common.
    """
    if ours == theirs or was == theirs:
        return Merged(ours, 0)
    if was is None:
        return _marked([diff3.Piece(split_lines(ours), split_lines(theirs))])
    if ours == was:
        return Merged(theirs, 0)
    git = find_program("git")
    merged = _merge_by_git(git, ours, was, theirs) if git is not None else None
    return merged if merged is not None else _marked(diff3.merge(ours, was, theirs))


def has_marks(content: bytes) -> bool:
    """Tell whether a text has the marks of a conflict in it, or a part of them."""
    lines = content.replace(b"\r\n", b"\n").split(b"\n")
    return _BEGIN in lines or _END in lines


def _merge_by_git(git: str, ours: bytes, was: bytes, theirs: bytes) -> Merged | None:
    """Return what git makes of it, None if it fails."""
    with tempfile.TemporaryDirectory(prefix="yolofs-merge.") as directory:
        for name, content in (("ours", ours), ("was", was), ("theirs", theirs)):
            with open(os.path.join(directory, name), "xb") as file:
                file.write(content)
        labels = [word for label in (_OURS, b"before", _THEIRS) for word in ("-L", label.decode())]
        try:
            done = subprocess.run(
                ["git", "merge-file", "-p", *labels, "ours", "was", "theirs"],
                executable=git,
                cwd=directory,
                env={
                    "PATH": os.environ.get("PATH", os.defpath),
                    "HOME": directory,
                    "LC_ALL": "C",
                    "GIT_CONFIG_NOSYSTEM": "1",
                    "GIT_CONFIG_GLOBAL": os.devnull,
                    "GIT_ATTR_NOSYSTEM": "1",
                    "GIT_CEILING_DIRECTORIES": os.path.dirname(directory),
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_GIT_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
    if not 0 <= done.returncode <= _MOST_GIT_CONFLICTS:
        return None
    return Merged(done.stdout, done.returncode)


def _marked(pieces: list[diff3.Piece]) -> Merged:
    """Return pieces as one text, with marks around what is in conflict."""
    text: list[bytes] = []
    conflicts = 0
    lines = (line for ours, theirs in pieces for line in (*ours, *(theirs or ())))
    ends = b"\r\n" if next(lines, b"").endswith(b"\r\n") else b"\n"
    for ours, theirs in pieces:
        if theirs is None:
            text.extend(ours)
            continue
        conflicts += 1
        text += [_BEGIN + ends, *_ended(ours, ends), _BETWEEN + ends, *_ended(theirs, ends), _END + ends]
    return Merged(b"".join(text), conflicts)


def _ended(lines: list[bytes], ends: bytes) -> list[bytes]:
    """Return lines of which the last one ends, too."""
    return [*lines[:-1], lines[-1] + ends] if lines and not lines[-1].endswith(b"\n") else lines
