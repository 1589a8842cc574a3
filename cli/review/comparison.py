"""What a review compares: records shared by its screen and by its readers of sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from yolofs.changes.changes import Change
from yolofs.cli.show.folding import Sort
from yolofs.cli.show.listing import PathDisplay
from yolofs.hostcode.mark import Marks
from yolofs.journal.timeline import BASE
from yolofs.paths import Generation, RelPath
from yolofs.state.regions import Regions


class ReviewSubject(NamedTuple):
    """What the user wants to review."""

    range_text: str
    paths: tuple[bytes, ...]
    """As they were typed; none for all."""
    scratch: bool
    hidden: bool


class ReviewableState(NamedTuple):
    """A state up to which the work can be shown."""

    generation: Generation | None
    """None is the present."""
    name: bytes


class Comparison(msgspec.Struct, frozen=True):
    """The changes between two states."""

    changes: Sequence[Change]
    """Those that are shown, sorted by path."""
    marks: Marks
    regions: Regions
    path_display: PathDisplay
    old: Generation
    steps: tuple[ReviewableState, ...]
    """The states between which one can walk, the last one reviewed."""
    at: int
    """Which of them is shown."""
    is_partial: bool = False
    """Whether it is only the beginning, to be shown until all is compared."""
    has_marks: bool = True
    """Whether the marks of host code have been computed."""
    is_part: bool = False
    """Whether it is not about all that is staged, but some paths or generations."""
    scratch_left_out: int = 0
    hidden_left_out: int = 0
    folded: Mapping[tuple[RelPath, bool], Sort] = {}
    """The changes that lists fold, by path and whether it is a deletion; known with the marks."""
    told: Mapping[Sort, str] = {}
    """For each kind of folded change, what happened there, if a few words can tell it."""

    @property
    def is_last(self) -> bool:
        """Whether what is shown is all that is reviewed."""
        return self.at == len(self.steps) - 1

    @property
    def is_present(self) -> bool:
        """Whether the present view is shown, which alone can be changed."""
        return self.steps[self.at].generation is None

    @property
    def can_commit(self) -> bool:
        """Whether it is what a commit would apply."""
        return self.is_present and self.old == BASE
