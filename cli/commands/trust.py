"""``yolofs trust``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from yolofs.cli.connection import connected
from yolofs.cli.options import options
from yolofs.cli.output import ask, emit, emit_json, paint, say, warn
from yolofs.cli.project import find_project, session_directory
from yolofs.cli.run.untrusted_settings import lines_to_agree_to, waiting_fields
from yolofs.config.trust import AT_NEXT_MOUNT, WaitingLine
from yolofs.errors import TrustError, UsageError
from yolofs.registry.trust import content_hash, digest_of_lines, forget_agreements
from yolofs.rules.rule_files import RuleFiles
from yolofs.system.mounts import is_inside_mount


@click.command()
@click.option("--digest", metavar="DIGEST", help="Agree without a question to the lines that have this digest.")
@click.option("--forget", "forgets", is_flag=True, help="Forget all that was agreed to for this project.")
@click.option("--json", "as_json", is_flag=True, help="Print what waits as a JSON document, and agree to nothing.")
def command(digest: str | None, forgets: bool, as_json: bool) -> None:
    """Agree to what the project's .yolofs.toml lets through.

    Anybody may have written that file. Lines that only tighten something hold at once; lines that
    open something wait. trust shows these lines and what each opens, and asks. It remembers what
    you agree to, for this project on this machine: when the file changes, only new lines wait.

    Without a terminal, only --digest agrees, and only to the lines that it stands for.
    """
    if (digest is not None) + forgets + as_json > 1:
        raise UsageError("--digest, --forget and --json do not go together", hint="yolofs trust --help")
    _check_outside()
    project = find_project()
    if forgets:
        _forget(project)
        return
    files, waiting = lines_to_agree_to(project)
    shown = digest_of_lines(project, waiting)
    if as_json:
        emit_json({"waiting": waiting_fields(waiting), "digest": shown, "agreed": len(files.agreed.meanings)})
        return
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


def _check_outside() -> None:
    """Check that it is not a program in a view that agrees.

    Raises:
        TrustError: it is.
    """
    from yolofs.cli.run.around_a_run import is_in_sandbox

    if is_in_sandbox() or options().guard is not None or is_inside_mount(os.getcwdb()):
        raise TrustError(
            "what .yolofs.toml lets through is not agreed to from inside a view",
            hint="yolofs trust, in a shell outside of it",
        )


def _check_agreed(files: RuleFiles, waiting: Sequence[WaitingLine], digest: str | None, shown: str) -> None:
    """Show what waits, and see that the user agrees.

    Raises:
        TrustError: there is nobody to ask, or ``digest`` is that of something else.
        Exit: the answer is no.
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
        what = f"; {agreed} settings in it are in force as you agreed to them" if agreed else ""
        say(f"nothing in .yolofs.toml waits for you to agree to it{what}")
    if gone:
        say(f"forgotten, as the file does not say it any more: {gone} setting{'s' if gone > 1 else ''}")
    later = [".".join(one.key) for one in waiting if ".".join(one.key) in AT_NEXT_MOUNT]
    if later and is_mounted:
        say(f"for {', '.join(later)}: yolofs unmount, then yolofs mount")


def _forget(project: bytes) -> None:
    was_there = forget_agreements(session_directory(project))
    with connected(project) as client:
        if client is not None:
            client.reload_rules()
    if not was_there:
        say("nothing was agreed to for this project")
        return
    say("forgotten; what .yolofs.toml lets through waits again")
    if client is not None:
        say("root, mount.allow_other and mount.xattrs stay as they are until yolofs unmount")
