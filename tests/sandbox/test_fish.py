"""fish in the view: it keeps its variables at home, and says so where it may not."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount

FISH_RUNS = "config.fish", "conf.d/a.fish", "functions/ls.fish", "completions/git.fish"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def yolofs(home: Path) -> Iterator[Program]:
    program = Program(home / "project")
    program.start_session()
    with program.mounted("--root", "/"):
        yield program


@pytest.mark.parametrize("is_new", [True, False])
def test_fish_starts_without_a_complaint_and_keeps_its_variables(yolofs: Program, home: Path, is_new: bool) -> None:
    assert shutil.which("fish"), "fish is not there; scripts/setup.sh installs it"
    if not is_new:
        for name in (".config/fish", ".local/share/fish"):
            (home / name).mkdir(parents=True)
    done = yolofs("run", "--no-review", "--", "fish", "-c", "set -U kept here; echo works")
    assert (done.out, done.err) == ("works\n", "")
    assert yolofs("run", "--no-review", "--", "fish", "-c", "echo $kept").out == "here\n"
    assert not (home / ".config/fish/fish_variables").exists()


@pytest.mark.parametrize("is_new", [True, False])
def test_a_shell_starts_and_ends_without_a_complaint(yolofs: Program, home: Path, is_new: bool) -> None:
    fish = shutil.which("fish")
    assert fish is not None, "fish is not there; scripts/setup.sh installs it"
    if not is_new:
        (home / ".config/fish").mkdir(parents=True)
        (home / ".config/fish/config.fish").write_text("")
    command = ["setsid", "--ctty", "--wait", *yolofs.command]  # fish wants a terminal of its own
    with Terminal(yolofs.project, ["shell", "--no-review"], command=command, SHELL=fish, HOME=str(home)) as terminal:
        terminal.wait_for("(yolofs) ")
        terminal.type("echo ty\\ped\n")
        terminal.wait_for("ty" + "ped\n")
        terminal.type("exit\n")
        assert terminal.wait() == 0
    assert [word for word in ("error", "warning", "denied") if word in terminal.text] == []
    assert "refusal" not in yolofs("log", "-v").out
    left = yolofs("run", "--", "sh", "-c", "ls -A ~/.config/fish ~/.local/share/fish/generated_completions; ls /tmp")
    assert "config.fish" in left.out.split() or is_new
    assert not any(word.startswith("tmp.") for word in left.out.split())


def test_start_files_of_fish_cannot_be_written_in_a_run(yolofs: Program, home: Path) -> None:
    writes = "; ".join(f"mkdir -p $(dirname ~/.config/fish/{name}); echo > ~/.config/fish/{name}" for name in FISH_RUNS)
    generated = (
        "mkdir -p ~/.local/share/fish/generated_completions; echo > ~/.local/share/fish/generated_completions/x.fish"
    )
    done = yolofs("run", "--no-review", "--", "sh", "-c", f"{writes}; {generated}", code=None)
    assert done.err.count("Permission denied") == len(FISH_RUNS) + 1


def test_what_fish_keeps_is_committed_only_by_its_name(yolofs: Program, home: Path) -> None:
    scripts = "ln -s /tmp ~/.config/fish/conf.d; ln -s /tmp ~/.local/share/fish/link"
    yolofs(
        "run",
        "--",
        "sh",
        "-c",
        f"mkdir -p ~/.config/fish ~/.local/share/fish; echo x > ~/.config/fish/fish_variables; {scripts}",
    )
    done = yolofs("commit", "--yes", "--outside", "--scratch", code=16)
    assert f"hint: yolofs commit {home}/.config/fish/conf.d {home}/.config/fish/fish_variables" in done.err
    assert [path for name in (".config", ".local") for path in (home / name).rglob("*") if not path.is_dir()] == []
