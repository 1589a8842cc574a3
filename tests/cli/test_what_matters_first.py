"""`diff` and `hunks` begin with what somebody reads, and fold the rest at a terminal, as `status`
does.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount


@pytest.fixture
def worked(yolofs: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Return a repository in which a run has committed, built something that git ignores, and
    edited.
    """
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "n")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "n@example.org")
    (yolofs.project / ".gitignore").write_text("build/\n.yolofs\n.yolofs.toml\n")
    (yolofs.project / "build").mkdir()
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run(["git", *words], cwd=yolofs.project, check=True)
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("one\nthree\n")
        (view / "build/out").write_text("built\n")
        subprocess.run(["git", "commit", "-qam", "two"], cwd=view, check=True)
        (view / "zz.txt").write_text("last\n")
    return worked_files(yolofs)


def worked_files(yolofs: Program) -> Program:
    assert {"a.txt", "build/out", "zz.txt", ".git/index"} <= set(yolofs("diff", "--name-only").out.splitlines())
    return yolofs


def position(text: str, *parts: str) -> list[int]:
    return [text.index(part) for part in parts]


def test_in_a_pipe_diff_and_hunks_list_all_with_the_insides_of_git_last(worked: Program) -> None:
    names = worked("diff", "--name-only").out.splitlines()
    assert names[:2] == ["a.txt", "zz.txt"]
    assert set(names[2:]) >= {".git/index", ".git/refs/heads/main", "build/out"}
    assert [line.split()[0] for line in worked("diff", "--stat").out.splitlines()][:3] == [
        "a.txt",
        "build/out",
        "zz.txt",
    ]
    for words in (("hunks", "--list"), ("diff", "--list")):
        out = worked(*words).out
        places = position(out, "a.txt", "zz.txt", ".git/index", "build/out")
        assert places == sorted(places)


def test_at_a_terminal_the_insides_of_git_and_what_it_ignores_are_a_line_each(worked: Program) -> None:
    for words in (["hunks", "--list"], ["hunks"], ["diff", "--name-only"]):
        with Terminal(worked.project, words, size=(100, 60), NO_COLOR="1") as terminal:
            assert terminal.wait() == 0
            text = terminal.text
        assert ".git/index" not in text
        places = position(text, "a.txt", "zz.txt", "-  git: 1 commit on main", "-  ignored by git: build/out")
        assert places == sorted(places)
        assert "--unfold)" in text
        for more in (["--unfold"], ["--", "."]):
            with Terminal(worked.project, [*words, *more], size=(100, 60), NO_COLOR="1", PAGER="") as terminal:
                assert terminal.wait() == 0
                assert ".git/index" in terminal.text
                assert "build/out" in terminal.text


def test_statistics_at_a_terminal_tell_what_they_fold(worked: Program) -> None:
    with Terminal(worked.project, ["diff", "--stat"], size=(100, 60), NO_COLOR="1") as terminal:
        assert terminal.wait() == 0
        text = terminal.text
    places = position(text, "zz.txt", "-  ignored by git: build/out  (1 change; --unfold)", "git refuses in patches")
    assert places == sorted(places)
    with Terminal(worked.project, ["diff", "--stat", "--unfold"], size=(100, 60), NO_COLOR="1") as terminal:
        assert terminal.wait() == 0
        assert " build/out " in terminal.text


def test_a_patch_at_a_terminal_tells_what_it_folds(worked: Program) -> None:
    with Terminal(worked.project, ["diff"], size=(100, 60), NO_COLOR="1", PAGER="") as terminal:
        assert terminal.wait() == 0
        text = terminal.text
    assert "b/zz.txt" in text
    assert "b/build/out" not in text
    assert "not shown: ignored by git: build/out" in text
    assert "git refuses in patches" in text
    with Terminal(worked.project, ["diff", "--unfold"], size=(100, 60), NO_COLOR="1", PAGER="") as terminal:
        assert terminal.wait() == 0
        assert "b/build/out" in terminal.text
    assert "b/build/out" in worked("diff").out


def test_files_that_the_host_would_run_are_never_folded(worked: Program) -> None:
    worked("mount", "--root", ".")
    hook = Path(os.readlink(worked.project / ".yolofs")) / "mnt/.git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    worked("unmount")
    for words in (["hunks", "--list"], ["diff", "--name-only"]):
        with Terminal(worked.project, words, size=(100, 60), NO_COLOR="1") as terminal:
            assert terminal.wait() == 0
            assert ".git/hooks/pre-commit" in terminal.text


def test_index_lines_are_short_at_a_terminal_and_whole_in_a_pipe(worked: Program) -> None:
    def digits(text: str) -> set[int]:
        lines = [line.split()[1] for line in text.splitlines() if line.startswith("index ")]
        return {len(name) for line in lines for name in line.split("..")}

    mountpoint = Path(worked("mount", "--root", ".").out.strip())
    (mountpoint / "image").write_bytes(bytes(range(256)) * 9)
    worked("unmount")
    with Terminal(worked.project, ["diff"], size=(100, 60), NO_COLOR="1", PAGER="") as terminal:
        assert terminal.wait() == 0
        assert digits(terminal.text) == {7}
    with Terminal(
        worked.project, ["diff", "--binary", "--", "image"], size=(200, 60), NO_COLOR="1", PAGER=""
    ) as terminal:
        assert terminal.wait() == 0
        assert digits(terminal.text) == {40}
    patch = worked("diff").out
    assert digits(patch) == {40}
    done = subprocess.run(["git", "apply", "-"], cwd=worked.project, input=patch.encode(), check=False)
    assert done.returncode == 0
    assert (worked.project / "image").read_bytes() == bytes(range(256)) * 9
    assert (worked.project / "zz.txt").read_text() == "last\n"
