"""What the guides quote of a terminal is what the program prints there; ``…`` stands for further
lines.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.planting import interrupt_commit
from tests.support.program import run_program
from tests.support.terminal import Terminal

GUIDE = Path(__file__).parents[2] / "docs/guide"
AGENT, SESSIONS = "working-with-an-agent.md", "sessions.md"
START = SESSIONS, "yolofs init"
MOVED = SESSIONS, "mv project moved && cd moved && yolofs status"
COPIED = SESSIONS, "cp -a moved copy && cd copy && yolofs status"
REBASED = SESSIONS, "yolofs sessions"
MARKED = SESSIONS, "yolofs commit --yes"
CONFLICT = SESSIONS, "yolofs status"
MERGED = SESSIONS, "yolofs commit --yes --merge"
UNDONE = SESSIONS, "yolofs commits"
FINISHED = SESSIONS, "yolofs commit --continue"
DAMAGED = SESSIONS, "yolofs diff"
TRUSTED = AGENT, "git clone https://example.org/project && cd project && yolofs init"
ALL = (START, MOVED, COPIED, REBASED, MARKED, CONFLICT, MERGED, UNDONE, FINISHED, DAMAGED, TRUSTED)
ID = "fe3b73bb3856"
"""What the guides have as the id of a session."""
_VARIES = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\d+ (?:s|min|h) ago|just now| +\d+(?:\.\d)? (?:B|KiB|MiB)\b|(?<=byte )\d+"
)
"""Times, ages, sizes and places."""


def blocks(page: Path) -> dict[str, str]:
    """Return what a page quotes of terminals, by the first command."""
    found = re.findall(r"^```console\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return {block.splitlines()[0].removeprefix("$ "): block for block in found}


class House:
    """The home directory ``/home/u`` of the guides, with a project in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.cwd = home / "project"
        self.cwd.mkdir()

    def write(self, **files: str) -> None:
        """Write files of base."""
        for name, text in files.items():
            (self.cwd / name).write_text(text)

    def view(self) -> CoreDriver:
        """Return a view of the whole machine."""
        return CoreDriver(b"/", os.fsencode(self.cwd))

    def path(self, name: str) -> bytes:
        """Return a path of the project in that view."""
        return os.fsencode(self.cwd / name)[1:]

    def check(self, block: tuple[str, str], **answers: str) -> None:
        """Type the commands of a block, and compare their output; ``answers`` has an answer for
        each command that asks.
        """
        page, first = block
        quoted = blocks(GUIDE / page)[first].splitlines()
        shown = []
        for command in (line[2:] for line in quoted if line.startswith("$ ")):
            shown += [f"$ {command}", *self._shown(command, answers).splitlines()]
        told = self._told("\n".join(shown)).splitlines()
        if quoted[-1] == "…":
            del told[len(quoted) - 1 :]
            told.append("…")
        assert told == self._told("\n".join(quoted)).splitlines()

    def _shown(self, command: str, answers: dict[str, str]) -> str:
        shown = ""
        for part in command.split(" && "):
            words = shlex.split(part.replace(ID, self.session_id), comments=True)
            if words[0] == "cd":
                self.cwd = self.cwd / words[1]
            elif words[:2] == ["yolofs", "run"]:
                assert "#" in part, "what a run prints is not looked at here"
            elif words[0] == "yolofs":
                shown += self._typed(words[1:], answers)
            else:
                done = subprocess.run(words, cwd=self.cwd, stdout=subprocess.PIPE, text=True, check=True)
                shown += done.stdout
        return shown

    def _typed(self, words: list[str], answers: dict[str, str]) -> str:
        with Terminal(self.cwd, words, size=(400, 50), NO_COLOR="1", COLUMNS="400") as terminal:
            if words[0] in answers:
                terminal.wait_for("[y/N]")
                terminal.type(answers[words[0]])
            terminal.wait()
            return terminal.text.replace("\r\n", "\n")

    def _told(self, text: str) -> str:
        """Return a text with the paths and the id of the guides, and without what varies."""
        return _VARIES.sub("~", text.replace(str(self.home), "/home/u").replace(self.session_id, ID))

    @property
    def session_id(self) -> str:
        """The id of the one session, as soon as there is one."""
        return next((path.name for path in self.home.glob(".local/state/yolofs/sessions/*")), ID)


def commit(house: House) -> None:
    """Commit all that is staged."""
    done = run_program(["commit", "--yes"], house.cwd)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """Return a home with a project, in which there is no session yet."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / ".local/state"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return House(tmp_path)


def test_the_guide_shows_how_a_session_is_started(house: House) -> None:
    house.check(START)


def test_the_guide_shows_what_becomes_of_moved_and_copied_projects(house: House) -> None:
    view = house.view()
    view.create(house.path("new"), b"new\n", 0o644)
    view.close()
    house.cwd = house.home
    house.check(MOVED)
    house.cwd = house.home
    house.check(COPIED)
    shutil.rmtree(house.home / "moved")
    house.cwd = house.home
    house.check(REBASED)


def test_the_guide_shows_what_a_commit_leaves_out(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    (house.cwd / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{house.cwd}/bin")
    view = house.view()
    view.create(house.path("z"), b"z\n", 0o644)
    view.create(house.path(".envrc"), b"export A=1\n", 0o644)
    view.create(house.path("bin/mycmd"), b"#!/bin/sh\n", 0o755)
    view.close()
    house.check(MARKED)


def test_the_guide_shows_a_conflict(house: House) -> None:
    house.write(a="1\n")
    view = house.view()
    view.overwrite(house.path("a"), b"2\n")
    view.create(house.path("c"), b"c\n", 0o644)
    view.close()
    house.write(a="base\n")
    house.check(CONFLICT)


def test_the_guide_shows_a_merge(house: House) -> None:
    house.write(a="1\n", b="1\n2\n3\n4\n5\n")
    view = house.view()
    view.overwrite(house.path("a"), b"staged\n")
    view.overwrite(house.path("b"), b"1\n2\n3\n4\nfive\n")
    view.close()
    house.write(a="base\n", b="one\n2\n3\n4\n5\n")
    house.check(MERGED)


def test_the_guide_shows_an_undo(house: House) -> None:
    house.write(a="1\n", b="2\n")
    view = house.view()
    view.overwrite(house.path("a"), b"one\n")
    view.unlink(house.path("b"))
    view.create(house.path("c"), b"c\n", 0o644)
    view.create(house.path("d"), b"d\n", 0o644)
    view.close()
    commit(house)
    house.check(UNDONE)


def test_the_guide_shows_how_an_interrupted_commit_is_finished(house: House) -> None:
    view = house.view()
    for name in ("f1", "f2", "f3", "f4"):
        view.create(house.path(name), b"new\n", 0o644)
    view.close()
    interrupt_commit(house.cwd, 2)
    house.check(FINISHED)


def test_the_guide_shows_a_damaged_journal(house: House) -> None:
    view = house.view()
    for name in ("one", "two", "three", "four"):
        view.create(house.path(name), b"new\n", 0o644)
    view.close()
    journal = Path(os.path.realpath(house.cwd / ".yolofs")) / "journal"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"two", b"owt").replace(b"one", b"eno")
    journal.write_bytes(b"".join(lines))
    house.check(DAMAGED)


def test_the_guide_shows_what_waits_in_a_clone(house: House) -> None:
    settings = ["", "", "[run]", 'keep_env = ["NPM_TOKEN"]', "", "", "", "[rules]", '"~/.ssh" = "read-only"', ""]
    house.write(**{".yolofs.toml": "\n".join(settings)})
    origin = house.cwd.rename(house.home / "origin")
    git = ["git", "-c", "user.name=u", "-c", "user.email=u@example.org"]
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "first"]):
        subprocess.run([*git, *words], cwd=origin, check=True)
    (house.home / ".gitconfig").write_text(f'[url "{origin}"]\n\tinsteadOf = https://example.org/project\n')
    house.cwd = house.home
    house.check(TRUSTED, trust="n\n")


def test_each_block_of_a_terminal_in_the_guides_is_looked_at() -> None:
    assert sorted((page.name, first) for page in GUIDE.glob("*.md") for first in blocks(page)) == sorted(ALL)
