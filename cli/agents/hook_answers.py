"""What an agent is answered that is about to run a shell command."""

from __future__ import annotations

from typing import Any

import msgspec

from yolofs.cli.agents.wrapping import is_wrapped, wrap

AGENTS_WITH_HOOKS = ("claude", "codex", "gemini", "copilot", "cursor")
"""Those that call ``yolofs hook``; opencode has a plugin that does the same."""
_SHELL_TOOLS = frozenset(
    {"Bash", "Monitor", "bash", "shell", "local_shell", "exec_command", "run_shell_command", "Shell"}
)
_POWERSHELL = "commands of PowerShell cannot be sent through yolofs; use bash"
_TYPED = (
    "what {} types could reach a shell outside of yolofs; give the command its input at its start, as in: "
    "printf 'y\\n' | COMMAND"
)
"""Copilot's shells go on after a command that was sent through yolofs, and take what is typed next
for a command of their own.
"""
_REFUSED_TOOLS = {
    "PowerShell": _POWERSHELL,
    "powershell": _POWERSHELL,
    "write_bash": _TYPED.format("write_bash"),
    "write_powershell": _TYPED.format("write_powershell"),
}
"""Why yolofs cannot send on what a tool does."""


def answer_to(agent: str, request: dict[str, Any]) -> dict[str, Any] | str:
    """Return what the hook of ``agent`` answers, for JSON: with the shell command that is to run
    instead; or an empty object if the agent is not about to run one.

    Return a text if the agent is refused: it says why.

    Raises:
        ValueError: a shell command is to run, and ``request`` has none, or no arguments at all.
        msgspec.DecodeError: the arguments are text that is not JSON.
    """
    if agent == "cursor" and "command" in request:
        return _cursor_before_shell(_text(request["command"]))
    tool = request.get("tool_name", request.get("toolName"))
    if tool in _REFUSED_TOOLS:
        return _REFUSED_TOOLS[tool]
    if tool not in _SHELL_TOOLS:
        return {}
    arguments = _arguments(request)
    if tool == "Monitor" and "ws" in arguments and "command" not in arguments:  # it watches a socket
        return {}
    changed = {**arguments, "command": wrap(_text(arguments.get("command")))}
    match agent:
        case "gemini":
            return {"decision": "allow", "hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": changed}}
        case "copilot":
            return {"permissionDecision": "allow", "modifiedArgs": changed}
        case "cursor":
            return {"permission": "allow", "updated_input": changed}
        case _:
            decision = {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": changed}
            return {"hookSpecificOutput": decision}


def _cursor_before_shell(text: str) -> dict[str, Any]:
    """Answer Cursor's last question before a command: its answer cannot change the command any
    more.
    """
    if is_wrapped(text):
        return {"permission": "allow"}
    message = f"Shell commands run through yolofs here. Run this instead: {wrap(text)}"
    return {"permission": "deny", "user_message": "not run through yolofs", "agent_message": message}


def _arguments(request: dict[str, Any]) -> dict[str, Any]:
    arguments = request.get("tool_input", request.get("toolArgs"))
    if isinstance(arguments, str):  # Copilot's are JSON in JSON
        arguments = msgspec.json.decode(arguments)
    if not isinstance(arguments, dict):
        raise ValueError("the tool has no arguments")
    return arguments


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("there is no command in it")
    return value
