"""What ``yolofs init --agents`` writes: each agent's hook, and the guide in the file that it reads.

Nothing of the user's is replaced: a hook is added to a JSON document, the guide is a marked block of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from yolofs.errors import ConfigError
from yolofs.paths import display

BEGIN = b"<!-- yolofs: begin (written by `yolofs init --agents`) -->\n"
END = b"<!-- yolofs: end -->\n"
GUIDE = b"""\
## This project is worked on through yolofs

Shell commands run as `yolofs run -- COMMAND`, in a view of the files: nothing is real until the user commits it.

- After each command stderr says what it changed, deletions and changes outside the project first. Read it: what you did
  not mean to change, undo with the `yolofs travel N` that it names, and tell the user.
- `EACCES` on a path means that a rule keeps you out, not that something is broken. Do not work around it: ask the user.
- `yolofs commit`, `abort`, `rule` and `answer` are for the user.
"""

_OPENCODE = """\
// Written by `yolofs init --agents`: shell commands run through yolofs, as a whole.
const quote = (text) => "'" + text.replaceAll("'", "'\\"'\\"'") + "'";

export const Yolofs = async () => ({
  "tool.execute.before": async (input, output) => {
    if (input.tool === "bash") output.args.command = "yolofs run -- bash -c " + quote(output.args.command);
  },
});
"""


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
        ConfigError: a file that is there is no JSON object, or not as the agent has it; nothing is written to it.
        OSError: a file cannot be written.
    """
    agent = AGENTS[name]
    hooks, guide = (os.path.join(project, os.fsencode(path)) for path in agent)
    new = _OPENCODE.encode() if name == "opencode" else _with_hooks(hooks, name)
    return [path for path, content in ((hooks, new), (guide, with_guide(_read(guide)))) if _write(path, content)]


def with_guide(text: bytes) -> bytes:
    """Return a text with the guide as its marked block, in the place of an older one."""
    block = BEGIN + GUIDE + END
    start = text.find(BEGIN)
    end = text.find(END, start)
    if start >= 0 and end >= 0:
        return text[:start] + block + text[end + len(END) :]
    separator = b"" if not text else b"\n" if text.endswith(b"\n") else b"\n\n"
    return text + separator + block


def _with_hooks(path: bytes, name: str) -> bytes:
    """Return the JSON document at ``path`` with the agent's hooks in it."""
    old = _read(path)
    try:
        document = msgspec.json.decode(old or b"{}", type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ConfigError(f"{display(path)} is no JSON object: {error}", hint="put the hook there by hand") from None
    is_changed = False
    for keys, entry in _entries(name):
        table = document
        for key in keys[:-1]:
            table = _checked(table.setdefault(key, {}), dict, path, keys)
        entries = _checked(table.setdefault(keys[-1], []), list, path, keys)
        if entry not in entries:
            entries.append(entry)
            is_changed = True
    if name in ("copilot", "cursor") and "version" not in document:
        document = {"version": 1, **document}
        is_changed = True
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n" if is_changed else old


def _entries(name: str) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yield the hooks of an agent, and where in its document they stand.

    Agents go on when a hook is missing or fails, except on exit code 2.
    """
    command = f"yolofs hook {name} || exit 2"
    match name:
        case "claude":
            yield ("hooks", "PreToolUse"), {"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}
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


def _checked(value: Any, kind: type, path: bytes, keys: tuple[str, ...]) -> Any:
    if not isinstance(value, kind):
        raise ConfigError(
            f"{display(path)}: {'.'.join(keys)} is not what the agent expects there", hint="put the hook there by hand"
        )
    return value


def _read(path: bytes) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def _write(path: bytes, content: bytes) -> bool:
    """Write a file in one step, unless it is like that already; return whether it was written."""
    if _read(path) == content:
        return False
    path = os.path.realpath(path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o644
    with open(path + b".yolofs-new", "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(content)
    os.rename(path + b".yolofs-new", path)
    return True
