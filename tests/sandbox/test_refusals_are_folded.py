"""A program that is refused a whole tree fills neither the audit nor the screen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program

pytestmark = pytest.mark.mount


def refusals(yolofs: Program) -> list[dict[str, object]]:
    lines = (yolofs.session / "audit.jsonl").read_bytes().splitlines()
    return [note for note in map(json.loads, lines) if note["kind"] == "refusal"]


def test_refusals_all_over_a_tree_are_counted_by_directory(repository: Program) -> None:
    for directory in range(40):
        (repository.project / f"tree/d{directory}").mkdir(parents=True)
        for name in range(30):
            (repository.project / f"tree/d{directory}/{name}").touch()
    repository("rule", "read-only", "tree")
    done = repository("run", "--", "rm", "-rf", "tree", code=1)
    noted = refusals(repository)
    assert len(noted) <= 20 * 20 + 20 + 1
    of_rm = [note for note in noted if note["operation"] == "delete"]
    assert sum(note["count"] for note in of_rm if isinstance(note["count"], int)) == 40 * 30
    tree = f"{repository.project}/tree"
    assert f"  refusal  delete, 1200 refused below {tree}, rm " in done.err
    assert done.err.count("refusal  ") == 1
    assert done.err.count('tree is "read-only"') == 1
    assert "1200 refusals)" in repository("log").out
    assert f" refused below {tree}" in repository("log", "-v").out
    (line,) = [note for note in repository("log", "--json").json["records"] if note.get("below") == tree]
    assert line["path"].startswith(f"{tree}/d")
    assert line["count"] == 20 * 30


def test_a_few_refusals_have_a_line_each_and_the_hint_shows_more(repository: Program) -> None:
    (repository.project / "dir").mkdir()
    repository("rule", "read-only", "dir")
    script = "for name in 1 2 3; do touch dir/$name; done; touch dir/1"
    done = repository("run", "--", "sh", "-c", script, code=None)
    for name in (1, 2, 3):
        assert done.err.count(f"refusal  create {repository.project}/dir/{name}, ") == 1
    assert "dir/1, touch " in done.err
    assert "(2 times)" in done.err
    shown = repository("log", "--run", "1").out
    assert f"refusal   create {repository.project}/dir/2, touch " in shown
    repository("run", "--", "true")
    assert " refusal " not in repository("log", "--run", "2").out


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    """Return the program in the project of a user with a home directory and settings of git."""
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    (home / ".gitconfig").write_text("[user]\n\tname = Somebody\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    program = Program(home / "project")
    program.start_session()
    with program.mounted("--root", "/"):
        yield program


def test_a_refusal_names_the_command_that_allows_it_and_that_works(at_home: Program) -> None:
    words = ("run", "--", "git", "config", "--global", "user.name", "x")
    done = at_home(*words, code=255)
    home = at_home.project.parent
    assert f"to allow next time what was refused:\n  yolofs rule allow {home}/.gitconfig {home}/.gitconfig.lock\n" in (
        done.err
    )
    (command,) = [line.strip() for line in done.err.splitlines() if line.startswith("  yolofs rule")]
    at_home(*command.split()[1:])
    at_home(*words)
    assert at_home("run", "--", "git", "config", "user.name").out == "x\n"


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (".local/lib/python3.11/site-packages", [".local/bin", ".local/share/man"]),
        (".local/share/uv", [".local/bin"]),
        (".local/share/pipx", [".local/bin", ".local/share/man"]),
        (".local/.crates.toml", [".local/.crates2.json", ".local/bin"]),
        (".cargo/.crates.toml", [".cargo/.crates2.json", ".cargo/bin"]),
    ],
)
@pytest.mark.some(3)
def test_one_command_allows_all_that_a_package_manager_needs(at_home: Program, first: str, then: list[str]) -> None:
    """What it is refused next is named at once: it may leave half of its work."""
    home = at_home.project.parent
    (home / first.partition("/")[0]).mkdir()
    script = f"set -e; for name in {first} {' '.join(then)}; do mkdir -p {home}/$name/x; done"
    done = at_home("run", "--", "sh", "-c", script, code=1)
    (command,) = [line.strip() for line in done.err.splitlines() if line.startswith("  yolofs rule")]
    top = first.partition("/python")[0]
    assert command == f"yolofs rule allow {' '.join(f'{home}/{name}' for name in (top, *then))}"
    at_home(*command.split()[1:])
    at_home("run", "--", "sh", "-c", script)


def test_no_command_is_offered_that_would_open_what_governs_yolofs(at_home: Program) -> None:
    done = at_home("run", "--", "sh", "-c", "echo > .yolofs.toml", code=None)
    assert "refusal  " in done.err
    assert "yolofs rule allow" not in done.err


@pytest.mark.parametrize("rule", ["hidden", "deny", None])
def test_a_refusal_that_no_command_lifts_names_the_command_that_tells_why(at_home: Program, rule: str | None) -> None:
    path = at_home.project / ("secret" if rule else ".yolofs.toml")
    if rule:
        at_home("rule", rule, path)
    done = at_home("run", "--", "sh", "-c", f"echo > {path}; echo > {path}", code=None)
    command = f"yolofs rule explain {path}"
    assert done.err.endswith(f"to see which rule decides there:\n  {command}\n")
    assert f"{path}: {rule or 'read-only'}" in at_home(*command.split()[1:]).out
