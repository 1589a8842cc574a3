"""Models of a review to press keys at, and what they show."""

from __future__ import annotations

import stat

from yolofs.changes.changes import Change, ChangeKind, Side
from yolofs.changes.hunks import FileHunks, Hunk, HunkKind
from yolofs.cli.review.comparison import Comparison, ReviewableState
from yolofs.cli.review.diff_view import DiffView
from yolofs.cli.review.drawing import draw_review
from yolofs.cli.review.keys import ReviewModel
from yolofs.cli.show.listing import PathDisplay
from yolofs.hostcode.mark import Marks
from yolofs.paths import Generation, RelPath
from yolofs.state.regions import Regions

PROJECT = RelPath(b"p")


def side(mode: int = 0o644, size: int = 1) -> Side:
    return Side(stat.S_IFREG, mode, 0, 0, 0, size, 0, b"/meta", b"/data", None)


def change(path: bytes, kind: ChangeKind = ChangeKind.MODIFIED, *, size: int = 1) -> Change:
    old = None if kind is ChangeKind.ADDED else side()
    new = None if kind is ChangeKind.DELETED else side(size=size)
    return Change(kind, RelPath(path), old=old, new=new, content=True)


def comparison(*changes: Change, marks: Marks | None = None, at: int = 0) -> Comparison:
    steps = (
        (ReviewableState(None, b""),)
        if at == 0
        else (ReviewableState(Generation(1), b"one"), ReviewableState(None, b""))
    )
    return Comparison(
        sorted(changes, key=lambda one: one.path),
        marks or {},
        Regions(PROJECT),
        PathDisplay(b"/", PROJECT),
        Generation(0),
        steps,
        len(steps) - 1,
    )


def view_of(one: Change, *hunks: Hunk) -> DiffView:
    return DiffView(FileHunks(one, hunks), (b"a\nb\nc\nd\n", b""))


def text(name: str, start: int, old: tuple[bytes, ...], new: tuple[bytes, ...], path: bytes = b"p/a") -> Hunk:
    return Hunk(name, HunkKind.TEXT, RelPath(path), old_start=start, new_start=start, old_lines=old, new_lines=new)


def small_model() -> ReviewModel:
    """Return a model with a changed file, a directory with two, and a deleted file."""
    made = ReviewModel()
    made.compared(
        comparison(
            change(b"p/a"), change(b"p/d/b"), change(b"p/d/c", ChangeKind.ADDED), change(b"p/x", ChangeKind.DELETED)
        )
    )
    return made


def shown(model: ReviewModel) -> list[str]:
    return ["".join(piece for _, piece in line).partition("│")[0].rstrip() for line in draw_review(model, 80, 12)][1:-2]


def press(model: ReviewModel, keys: str) -> None:
    for key in keys:
        model.key(key)
