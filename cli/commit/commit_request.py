"""What a commit of whole changes is to take, as the options of the command say it."""

from __future__ import annotations

import os
from typing import NamedTuple

from yolofs.cli.commit.exclude import parse_excludes
from yolofs.cli.commit.settling import ConflictRequest
from yolofs.cli.project.project import relative_paths
from yolofs.commit.select.selection import Selection
from yolofs.paths import Generation, in_shell
from yolofs.session.session import Session
from yolofs.state.regions import Region


class CommitRequest(NamedTuple):
    """Which changes the user wants committed."""

    paths: tuple[bytes, ...]
    outside: bool
    scratch: bool
    excludes: tuple[str, ...]
    trusted: bool
    up_to: str | None
    unfolds: bool
    """Whether each change is to have a line of its own."""

    def generation(self, session: Session) -> Generation | None:
        """Return the generation to commit up to; None for all that is staged.

        Raises:
            GenerationError: there is none of that number or name.
        """
        return session.timeline.resolve(self.up_to) if self.up_to is not None else None

    def options(self, wish: ConflictRequest) -> tuple[str, ...]:
        """Return the options for the version that is taken at each path, and for what it may
        replace.
        """
        return (*(("--up-to", in_shell(os.fsencode(self.up_to))) if self.up_to is not None else ()), *wish.options)

    def selection(self, session: Session) -> Selection:
        """Return the selection that the options mean in a session.

        Raises:
            UsageError: a path or pattern lies outside base, or is empty.
        """
        flags = {Region.PROJECT: True, Region.OUTSIDE: self.outside, Region.SCRATCH: self.scratch}
        wanted = frozenset(region for region, is_wanted in flags.items() if is_wanted)
        paths = tuple(relative_paths(session, self.paths))
        return Selection(session.regions, wanted, paths, parse_excludes(session, self.excludes), self.trusted)
