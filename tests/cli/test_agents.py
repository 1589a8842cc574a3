"""``yolofs init --agents`` and the hook that it puts in."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import Program, run_with_input
from yolofs.cli.agents.guides import AGENTS, BEGIN, END, with_guide
from yolofs.cli.agents.wrapping import is_wrapped, wrap

TRICKY = "cd a && rm -rf b; echo 'it'\"'\"'s' | tee c $(id) `id` # x\necho 2"


def hook(agent: str, request: object, code: int = 0) -> Any:
    """Return what the hook answers."""
    done = run_with_input(["hook", agent], Path.cwd(), json.dumps(request).encode())
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if code == 0 else done.stderr.decode()


def requests(agent: str, command: object) -> dict[str, Any]:
    """Return what an agent sends."""
    match agent:
        case "gemini":
            return {
                "hook_event_name": "BeforeTool",
                "tool_name": "run_shell_command",
                "tool_input": {"command": command},
            }
        case "copilot":
            return {"toolName": "bash", "toolArgs": json.dumps({"command": command, "description": "d"})}
        case "cursor":
            return {"hook_event_name": "preToolUse", "tool_name": "Shell", "tool_input": {"command": command}}
        case _:
            return {
                "hook_event_name": "PreToolUse",
                "tool_name": "Bash",
                "tool_input": {"command": command, "timeout": 5},
            }


def rewritten(agent: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return the tool's arguments as the answer has them."""
    match agent:
        case "gemini":
            return dict(answer["hookSpecificOutput"]["tool_input"])
        case "copilot":
            return dict(answer["modifiedArgs"])
        case "cursor":
            return dict(answer["updated_input"])
        case _:
            assert answer["hookSpecificOutput"]["permissionDecision"] == "allow"  # else Codex drops what is rewritten
            return dict(answer["hookSpecificOutput"]["updatedInput"])


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "copilot", "cursor"])
class TestHook:
    def test_the_whole_command_is_one_argument_of_a_run(self, agent: str) -> None:
        words = shlex.split(rewritten(agent, hook(agent, requests(agent, TRICKY)))["command"])
        assert words == ["yolofs", "run", "--", "bash", "-c", TRICKY]

    def test_a_hook_leaves_the_other_arguments_as_they_are(self, agent: str) -> None:
        arguments = rewritten(agent, hook(agent, requests(agent, "true")))
        request = requests(agent, "true")
        before = request.get("tool_input") or json.loads(request["toolArgs"])
        assert {**arguments, "command": "true"} == before

    def test_the_hook_does_not_touch_tools_that_run_no_commands(self, agent: str) -> None:
        assert hook(agent, {"tool_name": "Read", "toolName": "view", "tool_input": {"file_path": "x"}}) == {}

    def test_the_hook_has_a_malformed_request_not_run(self, agent: str) -> None:
        assert "not run" in hook(agent, requests(agent, None), code=2)
        assert "not run" in hook(agent, "text", code=2)


def test_claude_watches_by_commands_too_and_not_by_a_socket() -> None:
    watched = {"description": "the log", "timeout_ms": 300000, "command": TRICKY}
    changed = rewritten("claude", hook("claude", {"tool_name": "Monitor", "tool_input": watched}))
    assert changed == {**watched, "command": wrap(TRICKY)}
    socket = {"description": "events", "timeout_ms": 300000, "ws": {"url": "wss://example.org"}}
    assert hook("claude", {"tool_name": "Monitor", "tool_input": socket}) == {}


@pytest.mark.parametrize(("agent", "tool"), [("claude", "PowerShell"), ("copilot", "powershell")])
def test_a_command_for_a_shell_that_yolofs_does_not_start_is_not_run(agent: str, tool: str) -> None:
    request = {"tool_name": tool, "tool_input": {"command": "Get-ChildItem"}}
    assert "not run: commands of PowerShell cannot be sent through yolofs; use bash" in hook(agent, request, code=2)


@pytest.mark.parametrize("tool", ["write_bash", "write_powershell"])
def test_the_hook_refuses_input_for_a_shell_of_copilot_that_is_open_already(tool: str) -> None:
    """The shell outlives the command that was sent through yolofs, and is not in the sandbox."""
    arguments = {"sessionId": "1", "input": "rm -r ~{enter}"}
    said = hook("copilot", {"toolName": tool, "toolArgs": json.dumps(arguments)}, code=2)
    assert said == (
        f"yolofs: not run: what {tool} types could reach a shell outside of yolofs; give the command its input at its "
        "start, as in: printf 'y\\n' | COMMAND\n"
    )


def test_cursor_is_asked_again_and_lets_only_wrapped_commands_through() -> None:
    request = {"hook_event_name": "beforeShellExecution", "command": wrap(TRICKY), "cwd": "/"}
    assert hook("cursor", request) == {"permission": "allow"}
    for command in ("ls", f"{wrap('ls')} && rm x", f"{wrap('ls')}; ls", "yolofs run -- sh -c 'a' b"):
        answer = hook("cursor", {**request, "command": command})
        assert answer["permission"] == "deny"
        assert wrap(command) in answer["agent_message"]


@pytest.mark.parametrize("command", ["", "ls", "a && b", TRICKY, "echo '", "\\", "ü"])
def test_a_command_counts_as_wrapped_only_if_all_of_it_is(command: str) -> None:
    assert is_wrapped(wrap(command))
    assert not is_wrapped(command)
    assert not is_wrapped(wrap(command) + " ; ls")


@pytest.mark.parametrize("agent", AGENTS)
def test_hook_and_guide_are_written_once(tmp_path: Path, agent: str) -> None:
    yolofs = Program(tmp_path)
    done = yolofs("init", "--agents", agent)
    hooks, guide = (tmp_path / path for path in AGENTS[agent])
    assert f"{agent}: wrote {hooks}" in done.err
    assert "yolofs hook" in hooks.read_text() or agent == "opencode"
    assert guide.read_bytes().count(BEGIN) == 1
    before = hooks.read_bytes(), guide.read_bytes()
    assert "wrote" not in yolofs("init", "--agents", agent).err
    assert (hooks.read_bytes(), guide.read_bytes()) == before


def test_settings_that_are_there_stay_when_an_agent_is_set_up(tmp_path: Path) -> None:
    own = {
        "permissions": {"deny": ["Bash(curl:*)"]},
        "hooks": {"PreToolUse": [{"matcher": "Edit", "hooks": []}], "Stop": []},
    }
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_text(json.dumps(own))
    (tmp_path / "CLAUDE.md").write_text("# Mine\n")
    Program(tmp_path)("init", "--agents", "claude")
    settings = json.loads((tmp_path / ".claude/settings.json").read_text())
    assert settings["permissions"] == own["permissions"]
    assert settings["hooks"]["Stop"] == []
    assert settings["hooks"]["PreToolUse"][0] == {"matcher": "Edit", "hooks": []}
    assert settings["hooks"]["PreToolUse"][1]["matcher"] == "Bash|Monitor|PowerShell"
    assert (tmp_path / "CLAUDE.md").read_text().startswith("# Mine\n\n<!-- yolofs: begin")


def test_an_older_guide_is_replaced_where_it_stands() -> None:
    text = b"above\n" + BEGIN + b"old\n" + END + b"below\n"
    new = with_guide(text)
    assert new.startswith(b"above\n" + BEGIN)
    assert new.endswith(END + b"below\n")
    assert b"old\n" not in new


@pytest.mark.parametrize("content", ["{ // a comment\n}", "[]", '{"hooks": []}', '{"hooks": {"PreToolUse": {}}}'])
def test_a_file_that_cannot_be_added_to_is_left_alone(tmp_path: Path, content: str) -> None:
    (tmp_path / ".claude").mkdir()
    path = tmp_path / ".claude/settings.json"
    path.write_text(content)
    done = Program(tmp_path)("init", "--agents", "claude", code=3)
    assert "by hand" in done.err
    assert path.read_text() == content


def test_init_prints_a_hook_that_it_cannot_write_and_writes_those_of_other_agents(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_text("{ // a comment\n}")
    said = Program(tmp_path)("init", "--agents", "claude,codex", code=3).err
    _, _, snippet = said.partition("put this there by hand: ")
    assert json.loads(snippet) == {
        "hooks": {
            "PreToolUse": [
                {
                    "matcher": "Bash|Monitor|PowerShell",
                    "hooks": [{"type": "command", "command": "yolofs hook claude || exit 2"}],
                }
            ]
        }
    }
    assert not (tmp_path / "CLAUDE.md").exists()
    assert (tmp_path / ".codex/hooks.json").exists()


OWN_HOOK = {"matcher": "Bash", "hooks": [{"type": "command", "command": "mine.sh"}]}


@pytest.mark.parametrize("indent", [2, 4, "\t"])
def test_order_indentation_and_other_hooks_of_a_file_stay(tmp_path: Path, indent: int | str) -> None:
    own = {"z": [1, 2.5, None, "ü"], "hooks": {"Stop": [], "PreToolUse": [OWN_HOOK]}, "a": {"deep": {}}}
    path = tmp_path / ".claude/settings.json"
    path.parent.mkdir()
    path.write_text(json.dumps(own, indent=indent, ensure_ascii=False) + "\n")
    Program(tmp_path)("init", "--agents", "claude")
    added = json.loads(path.read_text())["hooks"]["PreToolUse"].pop()
    assert "yolofs hook claude" in json.dumps(added)
    own["hooks"]["PreToolUse"].append(added)  # type: ignore[index]  # as it stands above
    assert path.read_text() == json.dumps(own, indent=indent, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("command", ["yolofs hook claude", "yolofs hook claude || exit 2"])
def test_an_older_hook_of_ours_is_replaced_and_one_that_the_user_has_changed_stays(
    tmp_path: Path, command: str
) -> None:
    path = tmp_path / ".claude/settings.json"
    path.parent.mkdir()
    older = {"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}
    path.write_text(json.dumps({"hooks": {"PreToolUse": [older, OWN_HOOK]}}))
    Program(tmp_path)("init", "--agents", "claude")
    first, second = json.loads(path.read_text())["hooks"]["PreToolUse"]
    assert first["hooks"][0]["command"] == "yolofs hook claude || exit 2"
    assert first["matcher"] == "Bash|Monitor|PowerShell"
    assert second == OWN_HOOK
    first["hooks"][0]["timeout"] = 90
    changed = json.dumps({"hooks": {"PreToolUse": [first, OWN_HOOK]}})
    path.write_text(changed)
    assert "wrote" not in Program(tmp_path)("init", "--agents", "claude").err
    assert path.read_text() == changed


def test_a_key_that_is_there_twice_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / ".gemini/settings.json"
    path.parent.mkdir()
    path.write_text('{"a": 1, "a": 2}')
    assert "a key is there twice" in Program(tmp_path)("init", "--agents", "gemini", code=3).err
    assert path.read_text() == '{"a": 1, "a": 2}'


@pytest.mark.parametrize("change", [lambda text: text.replace(b"\n", b"\r\n"), lambda text: text.rstrip()])
def test_a_guide_that_an_editor_has_saved_otherwise_is_still_found(
    tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    yolofs = Program(tmp_path)
    (tmp_path / "AGENTS.md").write_text("# Mine\n")
    yolofs("init", "--agents", "codex")
    guide = tmp_path / "AGENTS.md"
    saved = change(guide.read_bytes())
    guide.write_bytes(saved)
    yolofs("init", "--agents", "codex")
    assert guide.read_bytes() == saved


def test_a_guide_without_its_end_is_not_written_again_below(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_bytes(BEGIN + b"x\n")
    assert "is incomplete" in Program(tmp_path)("init", "--agents", "codex", code=3).err
    assert (tmp_path / "AGENTS.md").read_bytes() == BEGIN + b"x\n"
    assert not (tmp_path / ".codex").exists()


def test_a_plugin_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / ".opencode/plugin/yolofs.js"
    path.parent.mkdir(parents=True)
    path.write_text("// mine\n")
    assert "yolofs did not write it" in Program(tmp_path)("init", "--agents", "opencode", code=3).err
    assert path.read_text() == "// mine\n"


def test_several_agents_share_a_guide(tmp_path: Path) -> None:
    Program(tmp_path)("init", "--agents", "codex,cursor, opencode")
    assert (tmp_path / "AGENTS.md").read_bytes().count(BEGIN) == 1


def test_an_agent_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    assert "hint: known: claude" in Program(tmp_path).refused("init", "--agents", "claude,gemni", code=2)
    assert not (tmp_path / ".yolofs").exists()


def test_the_plugin_for_opencode_wraps_the_whole_command(tmp_path: Path) -> None:
    Program(tmp_path)("init", "--agents", "opencode")
    script = (
        f"const {{ Yolofs }} = await import({json.dumps(str(tmp_path / '.opencode/plugin/yolofs.js'))});"
        f"const output = {{ args: {{ command: {json.dumps(TRICKY)} }} }};"
        'await (await Yolofs())["tool.execute.before"]({ tool: "bash" }, output);'
        "process.stdout.write(output.args.command);"
    )
    (tmp_path / ".opencode/plugin/package.json").write_text('{"type": "module"}')
    done = subprocess.run(["node", "--input-type=module", "-e", script], capture_output=True, check=True, timeout=60)
    assert shlex.split(done.stdout.decode()) == ["yolofs", "run", "--", "bash", "-c", TRICKY]
