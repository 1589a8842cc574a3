"""Merging a text that is staged with what base has: by git's ``merge-file``, or by
:mod:`yolofs.commit.merge.diff3`.

Starting git takes longer than all else that a merge of a file does.  So it is not started where
every way of merging gives the same text (:mod:`yolofs.commit.merge.separate_places`), and several
gits work at once.

git gets files of our own in a private directory, and no name from the tree; it finds no repository,
no configuration and no attributes.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
from collections.abc import Sequence
from typing import NamedTuple, Self

from yolofs.commit.merge import diff3
from yolofs.commit.merge.separate_places import merge_apart
from yolofs.state.kept_bases import MOST_KEPT_BYTES
from yolofs.system.host_programs import find_program
from yolofs.system.work_directories import work_directory
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


class TextMerger:
    """Merges texts, of any number of threads at once; a context manager, for the directory that git
    gets.
    """

    def __init__(self, place: bytes) -> None:
        """Find git; it gets its directory in ``place``, where no view shows what rules may hide."""
        self._place = place
        self._git = find_program("git")
        self._numbers = itertools.count()
        self._held = contextlib.ExitStack()
        self._directory: bytes | None = None

    def __enter__(self) -> Self:
        if self._git is not None:
            with contextlib.suppress(OSError):  # our own way needs none
                self._directory = self._held.enter_context(work_directory(self._place, "merge"))
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def merge(self, ours: bytes, was: bytes | None, theirs: bytes) -> Merged:
        """Merge the staged text and base's, against the original ``was``; with None both are new.

        Blocks, for a second or so where texts are large and have little in common.
        """
        if ours == theirs or was == theirs:
            return Merged(ours, 0)
        if was is None:
            return _marked([diff3.MergePiece(split_lines(ours), split_lines(theirs))])
        if ours == was:
            return Merged(theirs, 0)
        apart = merge_apart(ours, was, theirs)
        if apart is not None:
            return Merged(apart, 0)
        merged = self._merge_by_git(ours, was, theirs)
        return merged if merged is not None else _marked(diff3.merge(ours, was, theirs))

    def _merge_by_git(self, ours: bytes, was: bytes, theirs: bytes) -> Merged | None:
        """Return what git makes of it, None if there is none or it fails."""
        if self._git is None or self._directory is None:
            return None
        number = next(self._numbers)
        paths = [os.path.join(self._directory, b"%b-%d" % (name, number)) for name in (b"ours", b"was", b"theirs")]
        try:
            for path, content in zip(paths, (ours, was, theirs), strict=True):
                with open(path, "xb") as file:
                    file.write(content)
            return _run_git(self._git, self._directory, [os.path.basename(path) for path in paths])
        except (OSError, subprocess.TimeoutExpired):
            return None
        finally:
            for path in paths:
                with contextlib.suppress(OSError):
                    os.unlink(path)


def has_marks(content: bytes) -> bool:
    """Tell whether a text has the marks of a conflict in it, or a part of them."""
    lines = content.replace(b"\r\n", b"\n").split(b"\n")
    return _BEGIN in lines or _END in lines


def _run_git(git: str, directory: bytes, names: Sequence[bytes]) -> Merged | None:
    """Merge three files of a directory, which is all that git finds; return None if it fails.

    Raises:
        OSError: it cannot be started.
        subprocess.TimeoutExpired: it takes too long.
    """
    labels = [word for label in (_OURS, b"before", _THEIRS) for word in ("-L", label.decode())]
    done = subprocess.run(
        ["git", "merge-file", "-p", *labels, *names],
        executable=git,
        cwd=directory,
        env={
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": os.fsdecode(directory),
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_CEILING_DIRECTORIES": os.fsdecode(os.path.dirname(directory)),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=_GIT_TIMEOUT_S,
        check=False,
    )
    if not 0 <= done.returncode <= _MOST_GIT_CONFLICTS:
        return None
    return Merged(done.stdout, done.returncode)


def _marked(pieces: list[diff3.MergePiece]) -> Merged:
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
    """Return the lines, the last one with a line end, too."""
    return [*lines[:-1], lines[-1] + ends] if lines and not lines[-1].endswith(b"\n") else lines
