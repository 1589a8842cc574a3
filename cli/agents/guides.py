"""What ``yolofs init --agents`` writes: each agent's hook, and the guide in the file that it reads.

Nothing of the user's is replaced: a hook is added to a JSON document, the guide is a marked block
of its own.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from yolofs.cli.output import say, warn
from yolofs.errors import ConfigError
from yolofs.paths import display, is_below

BEGIN = b"<!-- yolofs: begin (written by `yolofs init --agents`) -->\n"
END = b"<!-- yolofs: end -->\n"
GUIDE = b"""\
## This project is worked on through yolofs

Shell commands run as `yolofs run -- COMMAND`, in a view of the files: nothing is real until the user commits it.

- After each command stderr says what it changed, deletions and changes outside the project first. Read it: what you did
  not mean to change, undo with the `yolofs travel N` that it names, and tell the user.
- What the user has dropped of your work, and why, stands there too, once; `yolofs feedback` prints it again. Do not do
  the same again.
- Each command has a shell of its own: `cd` and variables do not last until the next one.
- `EACCES` on a path means that a rule keeps you out, not that something is broken. Do not work around it: ask the user.
- `yolofs commit`, `abort`, `rule` and `answer` are for the user.
"""

_OLDER_MATCHERS = {"claude": "Bash"}
"""What our hook was for in earlier versions, where it is for more now."""
_OPENCODE_MARK = "// Written by `yolofs init --agents`"
_OPENCODE = (
    f"{_OPENCODE_MARK}: shell commands run through yolofs, as a whole.\n"
    """\
const quote = (text) => "'" + text.replaceAll("'", "'\\"'\\"'") + "'";

export const Yolofs = async () => ({
  "tool.execute.before": async (input, output) => {
    if (input.tool === "bash") output.args.command = "yolofs run -- bash -c " + quote(output.args.command);
  },
});
"""
)


class Agent(NamedTuple):
    """Where an agent looks."""

    hooks: str
    """The file with its hooks, relative to the project."""
    guide: str
    """The file that it reads."""


AGENTS = {
    "claude": Agent(".claude/settings.json", "CLAUDE.md"),
    "codex": Agent(".codex/hooks.json", "AGENTS.md"),
    "gemini": Agent(".gemini/settings.json", "GEMINI.md"),
    "copilot": Agent(".github/hooks/yolofs.json", ".github/copilot-instructions.md"),
    "cursor": Agent(".cursor/hooks.json", "AGENTS.md"),
    "opencode": Agent(".opencode/plugin/yolofs.js", "AGENTS.md"),
}


def install(project: bytes, name: str) -> list[bytes]:
    """Write the hook and the guide of an agent; return the files that have changed.

    Raises:
        ConfigError: a file that is there cannot be added to; nothing is written then.
        OSError: a file cannot be written.
    """
    agent = AGENTS[name]
    hooks, guide = (os.path.join(project, os.fsencode(path)) for path in agent)
    for path in (hooks, guide):
        _check_inside(project, path)
    new = _plugin(hooks) if name == "opencode" else _with_hooks(hooks, name)
    try:
        text = with_guide(_read(guide))
    except ValueError as error:
        raise ConfigError(f"{display(guide)}: {error}", hint="repair it, or remove what is left of the block") from None
    return [path for path, content in ((hooks, new), (guide, text)) if _write(path, content)]


def install_each(project: bytes, names: Sequence[str]) -> None:
    """Do :func:`install` for some agents, and say what was written.

    Raises:
        ConfigError: of one or more agents a file cannot be added to; all others have theirs.
        OSError: a file cannot be written.
    """
    problems: list[ConfigError] = []
    for name in names:
        try:
            for path in install(project, name):
                say(f"{name}: wrote {display(path)}")
        except ConfigError as error:  # the other agents have files of their own
            problems.append(error)
    for problem in problems[:-1]:
        warn(f"{problem.message}; {problem.hint}")
    if problems:
        raise problems[-1]


def with_guide(text: bytes) -> bytes:
    """Return a text with the guide as its marked block, in the place of an older one, with the
    text's line ends.

    Raises:
        ValueError: the block has a beginning and no end, or the other way round, or there are
            several.
    """
    block = BEGIN + GUIDE + END
    if b"\r\n" in text:
        block = block.replace(b"\n", b"\r\n")
    begin, end = BEGIN.rstrip(), END.rstrip()
    if (text.count(begin), text.count(end)) == (1, 1) and text.index(begin) < text.index(end):
        return text[: text.index(begin)] + block.rstrip() + text[text.index(end) + len(end) :]
    if begin in text or end in text:
        raise ValueError(
            f"the block between {begin.decode()} and {end.decode()} is incomplete, or there are two of them"
        )
    separator = b"" if not text else b"\n" if text.endswith(b"\n") else b"\n\n"
    return text + (separator.replace(b"\n", b"\r\n") if b"\r\n" in text else separator) + block


def _plugin(path: bytes) -> bytes:
    """Return the plugin for opencode.

    Raises:
        ConfigError: the file is somebody else's.
    """
    old = _read(path)
    if old and not old.startswith(_OPENCODE_MARK.encode()):
        raise ConfigError(f"{display(path)} exists already, and yolofs did not write it", hint="give it another name")
    return _OPENCODE.encode()


def _with_hooks(path: bytes, name: str) -> bytes:
    """Return the JSON document at ``path`` with the agent's hooks in it, in its own order and
    indentation.
    """
    old = _read(path)
    hint = "put this there by hand: " + json.dumps(_hooks_alone(name))
    try:
        document = json.loads(old or b"{}", object_pairs_hook=_distinct)
    except ValueError as error:
        raise ConfigError(f"{display(path)} is not a JSON document that can be added to: {error}", hint=hint) from None
    if not isinstance(document, dict):
        raise ConfigError(f"{display(path)} is not a JSON object", hint=hint)
    before = json.dumps(document)
    if name in ("copilot", "cursor"):
        document = {"version": 1, **document}
    for keys, entry in _entries(name):
        table = document
        for key in keys[:-1]:
            table = _checked(table.setdefault(key, {}), dict, path, keys, hint)
        _add(_checked(table.setdefault(keys[-1], []), list, path, keys, hint), entry, name)
    if json.dumps(document) == before:
        return old
    return json.dumps(document, indent=_indentation(old), ensure_ascii=old.isascii()).encode() + b"\n"


def _add(entries: list[Any], entry: dict[str, Any], name: str) -> None:
    """Add a hook, in the place of an older one of ours; one with our command that the user has
    changed stays.
    """
    command, mark = f'"{_command(name)}"', f'"yolofs hook {name}'
    older = {**entry, "matcher": _OLDER_MATCHERS.get(name)}
    if older in entries:
        entries[entries.index(older)] = entry
    if any(command in json.dumps(one) for one in entries):
        return
    at = next((at for at, one in enumerate(entries) if mark in json.dumps(one)), len(entries))
    entries[at : at + 1] = [entry]


def _hooks_alone(name: str) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for keys, entry in _entries(name):
        table = document
        for key in keys[:-1]:
            table = table.setdefault(key, {})
        table[keys[-1]] = [entry]
    return document


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; a key that is there twice would lose a value."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice in one object")
    return found


def _indentation(text: bytes) -> str:
    """Return what a JSON document is indented by: its first line that is."""
    found = re.search(rb"\n([ \t]+)\S", text)
    return found[1].decode() if found is not None else "  "


def _command(name: str) -> str:
    """Return the hook's command; if it is missing or fails, agents go on, except at exit code 2."""
    return f"yolofs hook {name} || exit 2"


def _entries(name: str) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yield the hooks of an agent, and where in its document they stand."""
    command = _command(name)
    match name:
        case "claude":
            hook = {"type": "command", "command": command}
            yield ("hooks", "PreToolUse"), {"matcher": "Bash|Monitor|PowerShell", "hooks": [hook]}
        case "codex":
            yield ("hooks", "PreToolUse"), {"matcher": "^Bash$", "hooks": [{"type": "command", "command": command}]}
        case "gemini":
            hook = {"name": "yolofs", "type": "command", "command": command}
            yield ("hooks", "BeforeTool"), {"matcher": "run_shell_command", "hooks": [hook]}
        case "copilot":
            yield ("hooks", "preToolUse"), {"type": "command", "bash": command, "timeoutSec": 30}
        case "cursor":
            yield ("hooks", "preToolUse"), {"command": command, "matcher": "Shell", "failClosed": True}
            yield ("hooks", "beforeShellExecution"), {"command": command, "failClosed": True}
        case _:
            raise AssertionError(name)


def _checked(value: Any, kind: type, path: bytes, keys: tuple[str, ...], hint: str) -> Any:
    if not isinstance(value, kind):
        raise ConfigError(f"{display(path)}: {'.'.join(keys)} is not what the agent expects there", hint=hint)
    return value


def _read(path: bytes) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def _check_inside(project: bytes, path: bytes) -> None:
    """Check that no link leads from a file of the project out of it.

    Raises:
        ConfigError: one does.
    """
    place = os.path.realpath(path)
    if not is_below(place, os.path.realpath(project)):
        raise ConfigError(
            f"{display(path)} leads to {display(place)}, outside of the project, and is not written to",
            hint="if you want the guide there, copy it from a project without that link",
        )


def _write(path: bytes, content: bytes) -> bool:
    """Write a file in one step, unless it is like that already; return whether it was written."""
    if _read(path) == content:
        return False
    path = os.path.realpath(path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o644
    temporary = b"%b.%b.yolofs-new" % (path, os.urandom(4).hex().encode())
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with open(fd, "wb") as file:
        os.fchmod(fd, mode)
        file.write(content)
    os.rename(temporary, path)
    return True
