"""Taking over a session that an earlier version of yolofs left in the project."""

from __future__ import annotations

from yolofs.cli.output import ask, check_can_ask, say
from yolofs.errors import TrustError, UsageError
from yolofs.paths import display, in_shell
from yolofs.registry.search import FoundProject
from yolofs.session.opening.earlier_versions import (
    EarlierSession,
    check_earlier,
    earlier_session,
    move_into_state,
    objections,
)


def adopt_harmless(project: bytes, state: bytes | None = None) -> FoundProject:
    """Move a session of an earlier version to the state directory; if it could do harm, only if the
    user says so.

    Raises:
        TrustError: it is not the user's, or could do harm and there is nobody to ask.
    """
    with earlier_session(project) as earlier:
        check_earlier(earlier)
        return _adopt(earlier, objections(earlier), state)


def adopt(project: bytes, state: bytes | None = None) -> FoundProject:
    """Move such a session for a user who has said that it is their own.

    What could do harm is shown, and nothing is asked.
    """
    with earlier_session(project) as earlier:
        check_earlier(earlier)
        for line in objections(earlier):
            say(f"  {line}")
        return _adopt(earlier, [], state)


def _adopt(earlier: EarlierSession, harm: list[str], state: bytes | None) -> FoundProject:
    project, path = earlier.project, earlier.path
    if harm:
        say(f"{display(path)} looks like a session of an earlier version; if it came with an archive or a repository:")
        for line in harm:
            say(f"  {line}")
        command = f"yolofs init --adopt {in_shell(project)}"
        try:
            check_can_ask(instead=command)
        except UsageError:
            raise TrustError(
                f"{display(path)} may not be yours, and is not used unasked",
                hint=f"if you made it: {command}; else remove it",
            ) from None
        if not ask("did you make it yourself, and is it to be used?"):
            raise TrustError(f"{display(path)} is not used", hint="remove or rename it; then: yolofs init")
    found = move_into_state(earlier, state)
    say(f"moved the session of {display(project)} from .yolofs/ to {display(found.session)}")
    return found
