"""Agreeing to the lines of a project's ``.yolofs.toml`` that open something."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from yolofs.cli.output import ask, emit, paint, say, warn
from yolofs.cli.project.connection import connected
from yolofs.cli.project.project import session_directory
from yolofs.config.trust import AT_NEXT_MOUNT, WaitingLine
from yolofs.errors import TrustError
from yolofs.registry.trust import content_hash, forget_agreements
from yolofs.rules.rule_files import RuleFiles


def agree(project: bytes, files: RuleFiles, waiting: Sequence[WaitingLine], *, digest: str | None, shown: str) -> None:
    """Show the lines that wait, have the user agree to them, and put them in force.

    ``shown`` is the digest of ``waiting``, ``digest`` the one that the user has given in place of
    an answer.

    Raises:
        TrustError: there is nobody to ask, or ``digest`` is that of something else.
        click.exceptions.Exit: the answer is no.
    """
    if files.agreed_problem:
        warn(f"what you agreed to does not count: {files.agreed_problem}")
    if waiting:
        _check_agreed(files, waiting, digest, shown)
    elif digest is not None:
        say("nothing waits for you to agree to it")
    gone = files.agree(waiting)
    with connected(project) as client:
        if client is not None:
            client.reload_rules()
    _report(waiting, len(files.agreed.meanings), gone, is_mounted=client is not None, is_quiet=digest is not None)


def forget_agreed(project: bytes) -> None:
    """Forget all that was agreed to for a project; its lines wait again."""
    was_there = forget_agreements(session_directory(project))
    with connected(project) as client:
        if client is not None:
            client.reload_rules()
    if not was_there:
        say("nothing was agreed to for this project")
        return
    say("forgotten; what .yolofs.toml lets through waits again")
    if client is not None:
        say("root and mount.allow_other stay as they are until yolofs unmount")


def _check_agreed(files: RuleFiles, waiting: Sequence[WaitingLine], digest: str | None, shown: str) -> None:
    """Show what waits, and see that the user agrees.

    Raises:
        TrustError: there is nobody to ask, or ``digest`` is that of something else.
        click.exceptions.Exit: the answer is no.
    """
    _emit(files, waiting)
    lines = "this line" if len(waiting) == 1 else f"these {len(waiting)} lines"
    if digest is not None:
        if digest != shown:
            raise TrustError(
                f"the digest is not that of {lines}: the file, or what it opens, has changed",
                hint=f"read what they open, then: yolofs trust --digest {shown}",
            )
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise TrustError(
            f"there is no terminal at which to ask you about {lines}",
            hint=f"read what they open, then: yolofs trust --digest {shown}",
        )
    if not ask(f"agree to {lines}?"):
        say("you have agreed to nothing; they are not in force")
        raise click.exceptions.Exit(1)


def _emit(files: RuleFiles, waiting: Sequence[WaitingLine]) -> None:
    before = files.agreed
    if before.content and before.content != content_hash(files.text):
        say("the file has changed since you agreed to what it said; this is new:")
    width = max(len(str(one.line or "?")) for one in waiting)
    for one in waiting:
        emit(f".yolofs.toml:{one.line or '?':<{width}}  {paint(one.shown, 'bold')}")
        emit(f"{'':<{width + 15}}{one.opens}")


def _report(waiting: Sequence[WaitingLine], agreed: int, gone: int, *, is_mounted: bool, is_quiet: bool) -> None:
    if waiting:
        say("agreed: all of .yolofs.toml is in force")
    elif not is_quiet:
        are, them = ("1 setting in it is", "it") if agreed == 1 else (f"{agreed} settings in it are", "them")
        what = f"; {are} in force, as you agreed to {them}" if agreed else ""
        say(f"nothing in .yolofs.toml waits for you to agree to it{what}")
    if gone:
        say(f"forgotten, as the file no longer says it: {gone} setting{'s' if gone > 1 else ''}")
    later = [".".join(one.key) for one in waiting if ".".join(one.key) in AT_NEXT_MOUNT]
    if later and is_mounted:
        say(f"for {', '.join(later)}: yolofs unmount, then yolofs mount")
