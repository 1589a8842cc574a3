"""Which settings of a tree hold at once, and which wait until the user has agreed to them.

``.yolofs.toml`` comes with the tree, so anybody may have written it.  What it only tightens holds
at once; what lets more through than would hold without it waits (``docs/reference/config.md``).
Pure: nothing here looks at a disk.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from yolofs.config.lines import KeyPath, Meaning
from yolofs.config.load import is_default
from yolofs.config.settings import RunSettings, Settings
from yolofs.paths import display
from yolofs.text.wildcards import Wildcards


class KeyTrust(enum.Enum):
    """What becomes of a key of a tree; the value is the word for it in
    ``docs/reference/config.md``.
    """

    HARMLESS = "harmless"
    """No value of it lets anything through, or keeps anything from the user's sight."""
    AT_ONCE = "at once"
    """No value of it lets more through than the default does."""
    WAITS = "waits"
    """Some value of it lets more through: that waits, all others hold at once."""


KEYS: Final[Mapping[KeyPath, KeyTrust]] = {
    ("root",): KeyTrust.WAITS,
    ("ask_timeout",): KeyTrust.HARMLESS,  # a part of what ask_default = "allow" means
    ("ask_unattended",): KeyTrust.HARMLESS,  # the same
    ("ask_default",): KeyTrust.WAITS,
    ("preset",): KeyTrust.WAITS,
    ("scratch",): KeyTrust.WAITS,
    ("host_code",): KeyTrust.AT_ONCE,  # it only adds to what a commit leaves
    ("mount", "allow_other"): KeyTrust.WAITS,
    ("mount", "base_timeout"): KeyTrust.HARMLESS,
    ("mount", "staged_timeout"): KeyTrust.HARMLESS,
    ("mount", "watch"): KeyTrust.HARMLESS,
    ("mount", "watched_timeout"): KeyTrust.HARMLESS,
    ("mount", "xattrs"): KeyTrust.WAITS,  # without them lists are neither enforced nor inherited
    ("mount", "spin_us"): KeyTrust.HARMLESS,
    ("mount", "switch_interval_ms"): KeyTrust.HARMLESS,
    ("mount", "max_fds"): KeyTrust.HARMLESS,
    ("mount", "transport"): KeyTrust.WAITS,
    ("run", "network"): KeyTrust.AT_ONCE,
    ("run", "native_binds"): KeyTrust.AT_ONCE,
    ("run", "tmp"): KeyTrust.WAITS,  # what the host has in /tmp shows with "view", and is staged
    ("run", "hide_env"): KeyTrust.WAITS,
    ("run", "keep_env"): KeyTrust.WAITS,
    ("diff", "context"): KeyTrust.HARMLESS,
    ("diff", "max_text_bytes"): KeyTrust.WAITS,
    ("keep_commits", "count"): KeyTrust.WAITS,
    ("keep_commits", "days"): KeyTrust.WAITS,
    ("keep_commits", "gib"): KeyTrust.WAITS,
    ("rules",): KeyTrust.WAITS,
}
"""Every key; one that is missing here has no effect, and fails a test.  Rules:
:mod:`yolofs.rules.loosening`.
"""

AT_NEXT_MOUNT: Final = frozenset({"root", "mount.allow_other", "mount.transport", "mount.xattrs"})
"""Keys of those that wait which a mount takes up when it begins; all others count at once."""


NEXT: Final = "yolofs trust"
"""The command that shows them, and asks."""


def count_text(count: int, *, about: str = "") -> str:
    """Return how many lines wait, as the beginning of a sentence; ``about`` says which, after a
    blank.
    """
    lines = f"1 line of .yolofs.toml{about} is" if count == 1 else f"{count} lines of .yolofs.toml{about} are"
    return f"{lines} not in force until you agree to {'it' if count == 1 else 'them'}"


class WaitingLine(NamedTuple):
    """A line that is not in force until the user agrees to it."""

    key: KeyPath
    shown: str
    """The line as one would write it, without what of it is in force already; safe for a
    terminal.
    """
    opens: str
    """What it lets through, as a clause."""
    meanings: tuple[Meaning, ...]
    line: int | None = None
    """Its line in the file, from 1; None if it is not known."""


class Surroundings(NamedTuple):
    """What settings mean depends on."""

    is_root: bool
    preset: Callable[[], str]
    """Returns the user's own word on the preset."""
    place_of: Callable[[str], str]
    """Returns the directory that a setting names, links resolved, so that it can be remembered:
    relative to the project if it lies in there, percent-encoded."""


class SettledSettings(NamedTuple):
    """Settings in force, without rules, and those that wait."""

    settings: Settings
    waiting: tuple[WaitingLine, ...]


def settle_settings(written: Settings, agreed: frozenset[Meaning], around: Surroundings) -> SettledSettings:
    """Return what is in force of the settings of a tree, except for its rules, and what waits.

    ``agreed``: what the user has agreed to.  What is not in force has the value that it would have
    without its line.
    """
    if is_default(written):
        return SettledSettings(_DEFAULTS, ())
    waiting: list[WaitingLine] = []
    values: dict[KeyPath, Any] = {}
    for path, trust in KEYS.items():
        value = _value(written, path)
        if path == ("rules",) or value == _value(_DEFAULTS, path):
            continue
        if trust is KeyTrust.WAITS:
            value, wait = _JUDGES[path](written, agreed, around)
            if wait is not None:
                waiting.append(wait)
        values[path] = value
    return SettledSettings(_settings_with(values), tuple(waiting))


# ---- single keys

_DEFAULTS = Settings.defaults()
_Judged: TypeAlias = tuple[Any, WaitingLine | None]
_Judge: TypeAlias = Callable[[Settings, frozenset[Meaning], Surroundings], _Judged]


def _root(written: Settings, agreed: frozenset[Meaning], around: Surroundings) -> _Judged:
    place = around.place_of(written.root)
    if place == "/":
        return written.root, None
    what = "the view shows this directory, and not the whole machine; what is staged is relative to it"
    return _whole(("root",), written.root, what, ("root", place), agreed)


def _ask_default(written: Settings, agreed: frozenset[Meaning], _: Surroundings) -> _Judged:
    unattended_s = min(written.ask_unattended, written.ask_timeout)
    what = f"whatever is asked is allowed if nobody answers for {written.ask_timeout:g} s"
    what += f", or nobody watches a run for {unattended_s:g} s" if unattended_s < written.ask_timeout else ""
    meaning = ("ask_default", written.ask_default, repr(written.ask_timeout), repr(unattended_s))
    return _whole(("ask_default",), written.ask_default, what, meaning, agreed)


def _preset(written: Settings, agreed: frozenset[Meaning], around: Surroundings) -> _Judged:
    if written.preset == around.preset():
        return written.preset, None
    what = {
        "none": "no built-in rule is in force, so only a rule of yours can hide credentials",
        "standard": "the built-in rules are in force: the project may be changed, and the system may be read",
    }[written.preset]
    return _whole(("preset",), written.preset, what, ("preset", written.preset), agreed)


def _scratch(written: Settings, agreed: frozenset[Meaning], around: Surroundings) -> _Judged:
    usual = {around.place_of(path) for path in _DEFAULTS.scratch}
    meanings = {path: ("scratch", around.place_of(path)) for path in written.scratch}
    waits = [path for path, meaning in meanings.items() if meaning[1] not in usual and meaning not in agreed]
    what = "changes in them are neither shown nor committed unless you ask for them"
    return _words_in_force(("scratch",), written.scratch, waits, what, meanings)


def _allow_other(written: Settings, agreed: frozenset[Meaning], around: Surroundings) -> _Judged:
    value = written.mount.allow_other
    if value is not True or around.is_root:
        return value, None
    path = ("mount", "allow_other")
    return _whole(path, value, "other users may enter the view", (".".join(path), "true"), agreed)


def _xattrs(written: Settings, agreed: frozenset[Meaning], _: Surroundings) -> _Judged:
    path = ("mount", "xattrs")
    value = written.mount.xattrs
    if value is not False:
        return value, None
    what = "access control lists are not enforced, and what is made gets none: it may be open to more users"
    return _whole(path, value, what, (".".join(path), "false"), agreed)


def _transport(written: Settings, agreed: frozenset[Meaning], _: Surroundings) -> _Judged:
    path = ("mount", "transport")
    value = written.mount.transport
    if value == _DEFAULTS.mount.transport:
        return value, None
    what = "another transport than the usual one stands between the kernel and yolofs"
    return _whole(path, value, what, (".".join(path), value), agreed)


def _tmp(written: Settings, agreed: frozenset[Meaning], _: Surroundings) -> _Judged:
    path = ("run", "tmp")
    value = written.run.tmp
    if value != "view":  # "private" shows less than all others, whatever the user's own file says
        return value, None
    what = "commands see what the host has in /tmp and /var/tmp, and what they change there is staged"
    return _whole(path, value, what, (".".join(path), value), agreed)


def _hide_env(written: Settings, agreed: frozenset[Meaning], _: Surroundings) -> _Judged:
    path = ("run", "hide_env")
    names = written.run.hide_env
    written_names = Wildcards(names)
    uncovered = [name for name in RunSettings().hide_env if not written_names.cover(name)]
    meanings = {name: (".".join(path), "without", name) for name in uncovered}
    missing = [name for name, meaning in meanings.items() if meaning not in agreed]
    if not missing:
        return names, None
    left_out = ", ".join(map(toml_text, missing))
    shown = f"run.hide_env without {left_out}"
    what = "commands get the variables that have these names, which are otherwise kept from them"
    return (*names, *missing), WaitingLine(path, shown, what, tuple(meanings[name] for name in missing))


def _keep_env(written: Settings, agreed: frozenset[Meaning], _: Surroundings) -> _Judged:
    path = ("run", "keep_env")
    meanings = {name: (".".join(path), name) for name in written.run.keep_env}
    waits = [name for name, meaning in meanings.items() if meaning not in agreed]
    what = "commands get all variables" if "*" in waits else "commands get the variables that have these names"
    what += ", also where hide_env keeps them back: tokens, passwords, keys"
    return _words_in_force(path, written.run.keep_env, waits, what, meanings)


def _max_text_bytes(written: Settings, agreed: frozenset[Meaning], _: Surroundings) -> _Judged:
    path = ("diff", "max_text_bytes")
    value = written.diff.max_text_bytes
    usual = _DEFAULTS.diff.max_text_bytes
    what = "diff does not show what changed in larger files" if value < usual else "diff reads files as large as that"
    return _whole(path, value, what, (".".join(path), str(value)), agreed)


def _keep_commits(key: str, written: Settings, agreed: frozenset[Meaning], _: Surroundings) -> _Judged:
    path = ("keep_commits", key)
    value = _value(written, path)
    if value >= _value(_DEFAULTS, path):
        return value, None
    what = "commits can be undone for a shorter time: what base had before is removed sooner"
    return _whole(path, value, what, (".".join(path), str(value)), agreed)


_JUDGES: Final[Mapping[KeyPath, _Judge]] = {
    ("root",): _root,
    ("ask_default",): _ask_default,
    ("preset",): _preset,
    ("scratch",): _scratch,
    ("mount", "allow_other"): _allow_other,
    ("mount", "transport"): _transport,
    ("mount", "xattrs"): _xattrs,
    ("run", "tmp"): _tmp,
    ("run", "hide_env"): _hide_env,
    ("run", "keep_env"): _keep_env,
    ("diff", "max_text_bytes"): _max_text_bytes,
    ("keep_commits", "count"): partial(_keep_commits, "count"),
    ("keep_commits", "days"): partial(_keep_commits, "days"),
    ("keep_commits", "gib"): partial(_keep_commits, "gib"),
}
"""For each key that waits, except for rules; called if it is not as by default."""


def _whole(path: KeyPath, value: Any, opens: str, meaning: Meaning, agreed: frozenset[Meaning]) -> _Judged:
    """Judge a key that is in force as it is written, or not at all."""
    if meaning in agreed:
        return value, None
    text = toml_text(value) if isinstance(value, str) else str(value).lower()
    return _value(_DEFAULTS, path), WaitingLine(path, f"{'.'.join(path)} = {text}", opens, (meaning,))


def _words_in_force(
    path: KeyPath, written: Sequence[str], waits: Iterable[str], opens: str, meanings: Mapping[str, Meaning]
) -> _Judged:
    """Judge a key that holds several words, each of which is in force or not."""
    left_out = dict.fromkeys(waits)
    in_force = tuple(word for word in written if word not in left_out)
    if not left_out:
        return in_force, None
    shown = f"{'.'.join(path)} = [{', '.join(map(toml_text, left_out))}]"
    return in_force, WaitingLine(path, shown, opens, tuple(meanings[word] for word in left_out))


def _value(settings: Settings, path: KeyPath) -> Any:
    value: Any = settings
    for key in path:
        value = getattr(value, key)
    return value


def _settings_with(values: Mapping[KeyPath, Any]) -> Settings:
    """Return the defaults with some values in place of theirs."""
    tables: dict[str, dict[str, Any]] = {}
    top: dict[str, Any] = {}
    for (first, *rest), value in values.items():
        if rest:
            tables.setdefault(first, {})[rest[0]] = value
        else:
            top[first] = value
    for name, changes in tables.items():
        top[name] = msgspec.structs.replace(getattr(_DEFAULTS, name), **changes)
    return msgspec.structs.replace(_DEFAULTS, **top)


def toml_text(text: str) -> str:
    """Return a string as TOML has it, safe for a terminal."""
    shown = display(text.encode(errors="surrogateescape"))
    return shown if shown.startswith('"') else f'"{shown}"'


def with_lines(waiting: Iterable[WaitingLine], lines: Mapping[KeyPath, int]) -> Iterator[WaitingLine]:
    """Add to what waits where it is written."""
    for one in waiting:
        yield one if one.line is not None else one._replace(line=lines.get(one.key))
