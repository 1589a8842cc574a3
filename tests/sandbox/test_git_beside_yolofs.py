"""git's view of the files that yolofs puts into a project, and of hidden files there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.git_indexes import index
from tests.support.program import Program
from tests.support.repositories import git
from yolofs.paths import in_shell

pytestmark = pytest.mark.mount


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Program]:
    """Return the program in a new git repository, for which a user has called init."""
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "-q", "-b", "main")
    git(project, "config", "user.name", "n")
    git(project, "config", "user.email", "n@example.org")
    (project / "a.txt").write_text("a\n")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "first")
    program = Program(project)
    program("init")
    with program.mounted("--root", "/"):
        yield program


@pytest.mark.parametrize("command", ["git stash -u", "git clean -fd"])
def test_git_leaves_the_settings_that_init_wrote_alone(started: Program, command: str) -> None:
    done = started("run", "sh", "-c", f"echo b >a.txt; echo new >new.txt; {command}; git checkout -q a.txt; ls -A")
    assert "failed to remove" not in done.err
    assert done.out.split()[-3:] == [".git", ".yolofs.toml", "a.txt"]
    assert started("run", "git", "status", "--porcelain").out == ""


HIDDEN = ".env", "sub/.env", "a b/.env.local"


@pytest.fixture
def tracking(tmp_path: Path) -> Iterator[Program]:
    """Return the program in a git repository that tracks files that the built-in rules hide."""
    project = tmp_path / "project"
    for name in (*HIDDEN, "a.txt", "sub/b.txt"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("A=1\n")
    git(project, "init", "-q", "-b", "main")
    git(project, "config", "user.name", "n")
    git(project, "config", "user.email", "n@example.org")
    git(project, "add", "-f", ".")
    git(project, "commit", "-q", "-m", "first")
    program = Program(project)
    program("init")
    with program.mounted("--root", "/"):
        yield program


def test_init_tells_what_is_tracked_and_hidden(tracking: Program) -> None:
    lines = tracking("init").err.splitlines()
    told = "a rule hides what git tracks, so git in a view takes it for deleted: .env, a b/.env.local, sub/.env"
    at = lines.index(told)
    assert lines[at + 1 : at + 5] == ["to show them to programs:", *allowing(tracking)]
    tracking("rule", "allow", *HIDDEN)
    assert "rule hides" not in tracking("init").err


def allowing(program: Program) -> list[str]:
    return [f"  yolofs rule allow {in_shell(os.fsencode(program.project / name))}" for name in sorted(HIDDEN)]


def test_what_git_takes_for_deleted_as_a_rule_hides_it_is_told(tracking: Program) -> None:
    told = "git took for deleted, and no longer tracks, what a rule hides: .env, a b/.env.local, sub/.env"
    done = tracking("run", "sh", "-c", "git rm -q --cached a.txt; echo c >sub/b.txt; git commit -qam work")
    for lines in (done.err.splitlines(), tracking("status").err.splitlines()):
        at = lines.index(told)
        assert lines[at + 1 : at + 5][0] == "to show them to programs:"
        assert lines[at + 2 : at + 5] == allowing(tracking)
    untracked = [found["path"] for found in tracking("status", "--json").json["hidden_untracked"]]
    assert untracked == [f"{tracking.project}/{name}" for name in sorted(HIDDEN)]
    inside = tracking("run", sys.executable, "-m", "yolofs.cli.main", "status")
    assert "git: 1 commit on main, index" in inside.out
    assert "rule hides" not in inside.out + inside.err


def test_after_the_rule_that_is_named_git_commits_what_the_agent_did_and_nothing_is_told(tracking: Program) -> None:
    tracking("rule", "allow", *HIDDEN)
    done = tracking("run", "sh", "-c", "echo c >a.txt; git commit -qam work; git show --stat --format=")
    assert "1 file changed" in done.out
    assert "rule hides" not in done.err + tracking("status").err


def test_an_index_from_elsewhere_has_nothing_told_of_files_outside(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\n")
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "-q")
    (project / ".git/index").write_bytes(index("../.env", "a/../../.env", str(tmp_path / ".env")))
    assert "rule hides" not in Program(project)("init").err


def test_an_index_with_a_name_that_no_file_can_have_does_not_stop_init(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".env").write_text("A=1\n")
    (tmp_path / ".git/index").write_bytes(index(".env", "x\0y"))
    assert Program(tmp_path)("init").err.splitlines()[-1].startswith("next:")


def test_a_linked_work_tree_and_a_submodule_are_told_of_too(tracking: Program) -> None:
    linked = tracking.project / "linked"
    git(tracking.project, "worktree", "add", "-q", str(linked))
    git(linked, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tracking.project), "within")
    git(linked, "commit", "-q", "-m", "with a submodule")
    assert (linked / ".git").is_file()
    assert (linked / "within/.git").is_file()
    git(linked / "within", "config", "user.name", "n")  # a submodule has settings of its own
    git(linked / "within", "config", "user.email", "n@example.org")
    done = tracking("run", "sh", "-c", "cd linked && git commit -qam work && cd within && git commit -qam work")
    assert "git took for deleted, and no longer tracks, what a rule hides: linked/.env, linked/a b/.env" in done.err
    untracked = [found["path"] for found in tracking("status", "--json").json["hidden_untracked"]]
    places = (linked, linked / "within")
    assert untracked == sorted(f"{place}/{name}" for place in places for name in HIDDEN)
    program = Program(linked)
    lines = program("init").err.splitlines()
    told = "a rule hides what git tracks, so git in a view takes it for deleted: .env, a b/.env.local, sub/.env"
    assert told + " and 3 more" in lines
    assert f"  yolofs rule allow {linked}/within/.env" in lines


def test_submodules_that_lead_back_to_the_repository_are_looked_at_once(tmp_path: Path) -> None:
    """Each leads to all again: 20 of them have 20 times 20 names one level below, and so on."""
    git(tmp_path, "init", "-q")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/.git").write_text("gitdir: ../.git\n")
    (tmp_path / ".env").write_text("A=1\n")
    names = [f"back{number:02}" for number in range(20)]
    for name in names:
        (tmp_path / name).symlink_to(".")
        (tmp_path / "sub" / name).symlink_to("..")
    (tmp_path / ".git/index").write_bytes(index(".env", *(f"{name}/sub" for name in names)))
    told = Program(tmp_path)("init").err
    assert "a rule hides what git tracks, so git in a view takes it for deleted: .env\n" in told
