"""Taking over a session that an earlier version of yolofs left in the project."""

from __future__ import annotations

import os

from yolofs.cli.output import ask, check_can_ask, say
from yolofs.errors import TrustError, UsageError
from yolofs.marks import SESSION_LINK
from yolofs.paths import display, in_shell
from yolofs.session_earlier import check_earlier, move_into_state, objections
from yolofs.sessions.search import Found


def adopt_harmless(project: bytes, state: bytes | None = None) -> Found:
    """Move a session of an earlier version to the state directory; if it could do harm, only if the user says so.

    Raises:
        TrustError: it is not the user's, or could do harm and there is nobody to ask.
    """
    check_earlier(project)
    return _adopt(project, objections(project), state)


def adopt(project: bytes, state: bytes | None = None) -> Found:
    """Move such a session for a user who has said that it is his: what could do harm is shown, and nothing asked."""
    check_earlier(project)
    for line in objections(project):
        say(f"  {line}")
    return _adopt(project, [], state)


def _adopt(project: bytes, harm: list[str], state: bytes | None) -> Found:
    path = os.path.join(project, SESSION_LINK)
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
    found = move_into_state(project, state)
    say(f"moved the session of {display(project)} from .yolofs/ to {display(found.session)}")
    return found
