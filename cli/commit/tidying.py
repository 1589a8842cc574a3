"""Removing old commits that are no longer kept: by ``yolofs gc``, and after each commit."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import NamedTuple

from yolofs.cli.output import warn
from yolofs.cli.project.project import changing, reading_whole, session_directory
from yolofs.config.load import keep_of, load, user_keep_commits
from yolofs.config.settings import KeepCommits
from yolofs.daemon.rpc.protocol import LoanKind
from yolofs.errors import YolofsError, reason
from yolofs.os_errors import said_as
from yolofs.session import run_tmp
from yolofs.session.dead_generations import dead_generations, drop_dead_generations
from yolofs.session.history.ended_commits import EndedCommit
from yolofs.session.history.retention import freed_by, put_aside, remove_gone, remove_half_written, surplus
from yolofs.session.session import Session
from yolofs.store.collecting import bytes_still_there
from yolofs.system.disk_usage import size_of
from yolofs.system.git_exclude import exclude_from_git
from yolofs.system.own_names import SESSION_LINK
from yolofs.system.work_directories import left_behind


class RemovedSurplus(NamedTuple):
    """What ``yolofs gc`` has removed, or would remove."""

    commits: Sequence[EndedCommit]
    generations: int
    """How many; 0 unless they were asked for, too."""
    killed_commands: int
    """Of how many the work directories."""
    freed_bytes: int
    """With ``--dry-run`` also what would be freed later."""
    freed_later_bytes: int = 0
    """What is freed once programs have closed the files that they have open in the mount."""
    once_agreed: Sequence[EndedCommit] = ()
    """The commits that would also go if the user agreed to the settings that wait."""


def foretell_removal(project: bytes, *, generations: bool, looks_at_waiting: bool) -> RemovedSurplus:
    """Return what :func:`remove_surplus` would remove; with ``looks_at_waiting`` also by the
    settings that wait.

    Raises:
        ConfigError, TrustError: as :func:`surplus_of`.
        YolofsError, OSError: the session cannot be read.
    """
    settings = load(project)  # which ends it, as it ends `yolofs gc`, if they are not in order
    with reading_whole(project) as session:
        gone = surplus_of(session)
        later: list[EndedCommit] = []
        if looks_at_waiting:
            later = [one for one in surplus_of(session, settings.keep_commits) if one not in gone]
        dropped = dead_generations(session) if generations else 0
        freed = freed_by(session, gone, time.time_ns(), generations=generations)
        killed = len(left_behind(session.directory))
        return RemovedSurplus(gone, dropped, killed, max(0, freed), once_agreed=later)


def remove_surplus(project: bytes, *, generations: bool) -> RemovedSurplus:
    """Remove surplus commits, leftovers of killed commands, and with ``generations`` the dead
    generations.

    Raises:
        ConfigError, TrustError: as :func:`surplus_of`.
        YolofsError: a commit was interrupted, or something could not be removed.
    """
    directory = session_directory(project)
    others = {run_tmp.top_of(directory)}  # in which programs are at work
    before = size_of(directory, without=others)  # opening it removes what a killed command has left
    sentence = "some of what is no longer kept could not be removed"
    again = "yolofs gc --generations" if generations else "yolofs gc"
    with said_as(YolofsError, sentence, again=again, place=directory):
        try:
            with changing(project, LoanKind.GC) as (session, is_mounted):
                session.check_no_interrupted_commit()
                gone = surplus_of(session)
                remove_half_written(session)
                put_aside(gone)
                dropped = drop_dead_generations(session) if generations else 0
                if not is_mounted:
                    session.collect()
                named, below = session.named_numbers() if is_mounted else set(), session.store.next_ino
        except OSError:
            remove_gone(directory, time.time_ns())  # on a full disk that makes room for another attempt
            raise
        killed = len(left_behind(directory))
        remove_gone(directory, time.time_ns())
        later = bytes_still_there(session.store, named, below=below) if is_mounted else 0
    freed = max(0, before - size_of(directory, without=others))
    return RemovedSurplus(gone, dropped, killed, freed, later)


def surplus_of(session: Session, project: KeepCommits | None = None) -> list[EndedCommit]:
    """Return the commits of a session that are not kept any more, by what its project says and the
    user.

    Raises:
        ConfigError: the user's own file is not in order, so nobody knows how long they want them.
        TrustError: the state directory is not the user's alone.
    """
    keep = keep_of(project if project is not None else session.settings.keep_commits, user_keep_commits())
    return surplus(session.directory, keep, time.time_ns())


def tidy_after_commit(session: Session) -> None:
    """Have git ignore the session's link in a repository that the commit may have brought, and set
    aside the commits that are no longer kept.

    An error here is only reported.  If the settings are not in order, none are set aside: they may
    say to keep more.
    """
    exclude_from_git(session.project, SESSION_LINK, may_create=False)
    if session.settings_problem:
        return
    try:
        put_aside(surplus_of(session))
    except (YolofsError, OSError) as error:
        warn(f"older commits were not removed: {error.message if isinstance(error, YolofsError) else reason(error)}")


def remove_tidied(directory: bytes) -> None:
    """Remove what was set aside.  What cannot be removed now is removed by a later call."""
    with contextlib.suppress(OSError):
        remove_gone(directory, time.time_ns())
