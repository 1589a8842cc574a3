"""Reads the PATH of ``yolofs rule``: a path as in the shell, or a pattern."""

from __future__ import annotations

import os
import re

from yolofs.cli.options import start_directory
from yolofs.cli.project.project import absolute_path, session_directory
from yolofs.errors import UsageError
from yolofs.paths import display, is_below
from yolofs.registry.state_directory import state_directory, state_of
from yolofs.rules import PathRule, Rule, RuleState, parse_rule, spell_rule
from yolofs.rules.spelling import URI_START, is_like_uri
from yolofs.system.mounts import is_inside_mount
from yolofs.system.own_names import SESSION_LINK

_PATTERN = re.compile(rb"(?:(?P<scope>.*)/)?\*\*/(?P<last>[^/]+)", re.DOTALL)
_WHOLE = b"/**"
_URIS = f"{URI_START}PATH, or ./file:… for a file of that name"


def read_key(project: bytes, text: bytes, state: RuleState) -> Rule:
    """Return the rule that gives a state to what a user typed.

    A path is relative to where the command starts; one in the mount stands for the same in base.
    Text with a ``*`` is a pattern if it can be one, else a path that has to exist.  A ``file:`` URI
    is understood, too, as lists of rules have them.

    Raises:
        UsageError: it is neither, or what it names is always hidden.
    """
    if text.startswith(os.fsencode(URI_START)):
        return _spelled(project, text, state)
    if is_like_uri(os.fsdecode(text)) and not os.path.lexists(os.path.join(start_directory(), text)):
        raise UsageError(f"{display(text)} is neither a file that exists nor a URI that yolofs understands", hint=_URIS)
    is_whole = text.endswith(_WHOLE)
    head = text.removesuffix(_WHOLE) or b"/" if is_whole else text
    if b"*" not in head:
        return PathRule(_checked(project, typed_path(project, head)), state, "", is_whole)
    found = _PATTERN.fullmatch(head)
    if found is not None and b"*" not in (found["scope"] or b""):
        return _pattern(project, found["scope"], found["last"], state, is_whole=is_whole)
    if os.path.lexists(os.path.join(start_directory(), text)):
        return PathRule(_checked(project, typed_path(project, text)), state, "")
    raise UsageError(
        f"{display(text)} is neither a pattern nor a file that exists",
        hint='patterns are "**/NAME", "**/*.EXT", "DIR/**/NAME" and "DIR/**/*.EXT"',
    )


def typed_path(project: bytes, text: bytes) -> bytes:
    """Return a path that a user typed, absolute; ``~`` is understood where the shell left it, in
    quotes.
    """
    return absolute_path(project, _with_home(text))


def path_as_typed(text: bytes) -> bytes | None:
    """Return a path that a user typed, absolute, with its links; None if it leads into a mount,
    which follows them.
    """
    path = os.path.join(start_directory(), _with_home(text))
    return None if is_inside_mount(path) else path


def _with_home(text: bytes) -> bytes:
    """Return a path with the home directory for a ``~`` at its beginning, unless there is a file of
    that name.
    """
    if text.split(b"/")[0] == b"~" and not os.path.lexists(os.path.join(start_directory(), b"~")):
        return os.path.expanduser(b"~") + text[1:]
    return text


def always_hidden(project: bytes, path: bytes) -> bytes | None:
    """Return what no rule can show if a path is that or lies in it: the session's link, a state
    directory.
    """
    own = (os.path.join(project, SESSION_LINK), state_of(session_directory(project)), state_directory())
    return next((top for top in own if is_below(path, top)), None)


def _spelled(project: bytes, text: bytes, state: RuleState) -> Rule:
    """Return the rule with a key that :func:`yolofs.rules.spell_rule` made."""
    try:
        rule = parse_rule(os.fsdecode(text), state, "", None, b"/")
    except ValueError as error:
        raise UsageError(f"{display(text)}: {error}") from error
    if isinstance(rule, PathRule):
        _checked(project, rule.path)
    return rule


def _pattern(project: bytes, scope: bytes | None, last: bytes, state: RuleState, *, is_whole: bool) -> Rule:
    try:
        key = "**/" + last.decode() + ("/**" if is_whole else "")
        if scope is not None:
            directory = spell_rule(PathRule(typed_path(project, scope or b"/"), state, ""))
            key = directory.rstrip("/") + "/" + key
        return parse_rule(key, state, "", None, b"/")
    except UnicodeDecodeError:
        raise UsageError("a pattern has to be UTF-8", hint="name the path itself") from None
    except ValueError as error:
        raise UsageError(f"{display(last)}: {error}") from error


def _checked(project: bytes, path: bytes) -> bytes:
    if always_hidden(project, path) is not None:
        raise UsageError(f"{display(path)} is the session's own: it is always hidden, and no rule can show it")
    return path
