"""What an agent's hook makes of a command really runs as a whole in the view, and does what it
would have done.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.support.fault_points import points
from tests.support.program import COMMAND, Program, run_with_input

pytestmark = pytest.mark.mount

COMMANDS = {
    "a list": "echo 1 > a && cat a; echo 2 | tee b | wc -c",
    "either": "false || echo or > c; cat c; exit 5",
    "quotes": """echo 'it'"'"'s "so"' "$HOME"x > 'a b'; cat a\\ b | sed "s#$HOME##" """,
    "newlines": "for i in 1 2\ndo\n  echo $i >> n\ndone\ncat n",
    "a here-document": "cat > h <<'END'\n$not `expanded` ; rm -rf x\nEND\ncat h; cat <<< here",
    "a comment at the end": "echo x > k; cat k # the end; rm k",
    "a subshell and background": "(cd /; pwd); echo bg > w & wait; cat w",
    "substitution": "echo $(echo deep > d; cat d) `echo old`; cat <(echo process)",
    "trailing backslash": "echo a \\\n  b > t; cat t",
    "braces and globs": "touch x{1,2}.g; ls *.g; rm *.g",
    "set -e and a function": "set -e; f() { echo f > fn; false; echo never; }; f",
    "an option for echo": "-x() { :; }; echo -n > e; echo -- -c",
}


@pytest.mark.parametrize("name", points(list(COMMANDS), "wrapped commands", some=3))
def test_a_wrapped_command_does_in_the_view_what_it_would_have_done_outside(
    yolofs: Program, tmp_path: Path, name: str
) -> None:
    command = COMMANDS[name]
    wanted = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, check=False, timeout=60)
    request = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": command}}
    answer = run_with_input(["hook", "claude"], tmp_path, json.dumps(request).encode())
    wrapped = json.loads(answer.stdout)["hookSpecificOutput"]["updatedInput"]["command"]
    names = tmp_path / "bin"
    names.mkdir()
    (names / "yolofs").write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
    (names / "yolofs").chmod(0o755)
    before = sorted(os.listdir(yolofs.project))
    done = subprocess.run(
        ["bash", "-c", wrapped],
        cwd=yolofs.project,
        env=os.environ | {"PATH": f"{names}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (wanted.returncode, wanted.stdout)
    assert sorted(os.listdir(yolofs.project)) == before
    made = {path.name for path in tmp_path.iterdir()} - {"bin"}
    shown = set(yolofs("run", "ls", "-A").out.splitlines()) - set(before)
    assert made == shown - {".yolofs"}
