"""``yolofs completion``: what a shell offers while one types."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import Program


@pytest.fixture
def staged(yolofs: Program) -> Program:
    """A session with a named generation, and a path in a directory that is staged."""
    with yolofs.mounted() as view:
        (view / "dir/new file").parent.mkdir(exist_ok=True)
        (view / "dir/new file").write_text("new\n")
        yolofs("snapshot", "before it")
        (view / "a.txt").unlink()
    return yolofs


def offered(yolofs: Program, *words: str, cwd: Path | None = None, shell: str = "zsh") -> list[str]:
    """Return the words that are offered at the end of a command line, as zsh and fish ask for
    them.
    """
    environment = os.environ | {
        "_YOLOFS_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": words[-1] if shell == "fish" else str(len(words) - 1),
    }
    done = subprocess.run(
        yolofs.command, cwd=cwd or yolofs.project, env=environment, capture_output=True, text=True, check=True
    )
    assert not done.stderr
    if shell == "fish":
        return [line.partition(",")[2].partition("\t")[0] for line in done.stdout.splitlines()]
    return [word.replace("\\:", ":") for word in done.stdout.split("\n")[1::3] if word]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_generations_and_names_of_snapshots_are_offered(staged: Program, shell: str) -> None:
    for command in ("travel", "diff", "log"):
        assert {"base", "1", "before it"} <= set(offered(staged, "yolofs", command, "", shell=shell))
    assert offered(staged, "yolofs", "travel", "be", shell=shell) == ["before it"]
    assert "1:" in offered(staged, "yolofs", "cat", "", shell=shell)
    assert "before it" in offered(staged, "yolofs", "restore", "--from", "", shell=shell)


def test_hunks_are_offered_by_their_ids_with_what_they_are(staged: Program) -> None:
    ids = {hunk["path"].rpartition("/")[2]: hunk["id"] for hunk in staged("hunks", "--json").json["hunks"]}
    name = ids["new file"]
    assert set(offered(staged, "yolofs", "commit", "--hunk", "")) == set(ids.values())
    assert offered(staged, "yolofs", "restore", "--hunk", name[:5]) == [name]
    assert offered(staged, "yolofs", "hunks", "--edit", name[:5], shell="fish") == [name]
    (gone,) = staged("hunks", "before it..", "--json").json["hunks"]
    assert offered(staged, "yolofs", "restore", "--from", "1", "--hunk", "") == [gone["id"]]


def test_staged_paths_are_offered_as_one_types_them(staged: Program) -> None:
    assert set(offered(staged, "yolofs", "commit", "")) == {"dir/new file", "a.txt"}
    assert offered(staged, "yolofs", "commit", "dir/") == ["dir/new file"]
    assert offered(staged, "yolofs", "diff", "--", "a") == ["a.txt"]
    assert sorted(offered(staged, "yolofs", "restore", "", cwd=staged.project / "dir")) == ["../a.txt", "new file"]
    assert offered(staged, "yolofs", "commit", f"{staged.project}/a") == [f"{staged.project}/a.txt"]
    assert offered(staged, "yolofs", "-C", str(staged.project), "blame", "a", cwd=Path("/")) != []


def test_commands_and_options_are_offered(yolofs: Program) -> None:
    assert {"restore", "status"} <= set(offered(yolofs, "yolofs", ""))
    assert "--up-to" in offered(yolofs, "yolofs", "commit", "--u")


def test_where_there_is_no_session_nothing_is_said(yolofs: Program, tmp_path: Path) -> None:
    assert offered(yolofs, "yolofs", "travel", "", cwd=tmp_path) == []


def test_bash_completes_generations(staged: Program) -> None:
    script = staged("completion", "bash").out
    program = staged.project / "yolofs"
    program.write_text(f'#!/bin/sh\nexec {" ".join(staged.command)} "$@"\n')
    program.chmod(0o755)
    words = f"COMP_WORDS=({program} travel be)\nCOMP_CWORD=2\n_yolofs_completion {program}"
    asks = f'{script}\n{words}\nprintf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(
        ["bash", "--norc", "-c", asks], cwd=staged.project, capture_output=True, text=True, check=True
    )
    assert done.stdout == "before\\ it\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(yolofs: Program, shell: str) -> None:
    script = yolofs("completion", shell).out
    assert f"_YOLOFS_COMPLETE={shell}_complete" in script
    assert "_yolofs_completion" in script


def completed_by_bash(yolofs: Program, *words: str) -> list[str]:
    """Return what bash puts into the command line: just so, as no shell quotes it."""
    script = yolofs("completion", "bash").out
    program = yolofs.project / "yolofs"
    program.write_text(f'#!/bin/sh\nexec {" ".join(yolofs.command)} "$@"\n')
    program.chmod(0o755)
    line = f"COMP_WORDS=({program} {' '.join(words)} '')\nCOMP_CWORD={len(words) + 1}\n_yolofs_completion {program}"
    asks = f'{script}\n{line}\nprintf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(
        ["bash", "--norc", "-c", asks], cwd=yolofs.project, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_bash_gets_names_quoted_so_that_nothing_of_them_is_run_or_expanded(yolofs: Program) -> None:
    names = (
        "$(touch ran)",
        "`touch ran`",
        "a;touch ran",
        "a|b",
        "a&b",
        ">b",
        "*",
        "{a,b}",
        "~root",
        "!1",
        "#x",
        "a'b,",
    )
    with yolofs.mounted() as view:
        for name in names:
            (view / name).write_text("new\n")
            yolofs("snapshot", "--", name)
    words = {name for name in completed_by_bash(yolofs, "travel") if not name.isdigit()}
    for found in (completed_by_bash(yolofs, "commit"), words - {"base", "-"}):
        assert len(found) == len(names)
        line = f"printf '%s\\0' {' '.join(found)}"
        done = subprocess.run(["bash", "--norc", "-c", line], cwd=yolofs.project, capture_output=True, check=True)
        assert sorted(done.stdout.decode().split("\0")[:-1]) == sorted(names)
    assert not (yolofs.project / "ran").exists()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_a_staged_path_is_not_offered_as_an_option(yolofs: Program, shell: str) -> None:
    with yolofs.mounted() as view:
        (view / "--trusted").write_text("new\n")
        yolofs("snapshot", "--", "--force")
    assert "--trusted" not in offered(yolofs, "yolofs", "commit", "", shell=shell)
    assert offered(yolofs, "yolofs", "diff", "--", "", shell=shell) == ["--trusted"]
    assert "--force" not in offered(yolofs, "yolofs", "travel", "", shell=shell)
