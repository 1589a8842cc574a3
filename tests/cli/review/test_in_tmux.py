"""``yolofs review`` in tmux, whose terminal is another one than the tests' own: every key does what
it says.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.review import every_key
from tests.cli.review.reviewing import LINES
from tests.support.program import COMMAND, Program, wait_until

pytestmark = [
    pytest.mark.mount,
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("tmux") is None or shutil.which("bash") is None, reason="tmux or bash is not there"
    ),
]

NAMES = {
    " ": "Space", "up": "Up", "down": "Down", "left": "Left", "right": "Right", "home": "Home", "end": "End",
    "pageup": "PageUp", "pagedown": "PageDown", "enter": "Enter", "escape": "Escape", "tab": "Tab", "c-d": "C-d",
}  # fmt: skip
"""What tmux calls keys."""


class Tmux:
    """A window of tmux, with a server of its own."""

    def __init__(self, directory: Path, columns: int, rows: int) -> None:
        self._socket = str(directory / "tmux")
        self("-f", "/dev/null", "new-session", "-d", "-s", "t", "-x", str(columns), "-y", str(rows), "bash", "--norc")

    def __call__(self, *words: str) -> str:
        environment = {name: value for name, value in os.environ.items() if name != "TMUX"}
        done = subprocess.run(
            ["tmux", "-S", self._socket, *words], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    @property
    def screen(self) -> str:
        """What the window shows."""
        return self("capture-pane", "-p", "-t", "t")

    def keys(self, *names: str) -> None:
        """Press keys, by their names in tmux."""
        self("send-keys", "-t", "t", *names)

    def see(self, *texts: str, gone: str | None = None) -> None:
        """Wait until texts are shown, and another one is not."""
        wait_until(
            lambda: all(text in self.screen for text in texts) and (gone is None or gone not in self.screen),
            f"{texts}, gone {gone!r}",
        )


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    window = Tmux(tmp_path, 100, 24)
    yield window
    window("kill-server")


@pytest.fixture
def yolofs(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A project with a short path, as each line has to fit on the screen."""
    project = tmp_path_factory.mktemp("t") / "p"
    (project / "src").mkdir(parents=True)
    (project / "src/a.py").write_text(LINES)
    (project / "gone.txt").write_text("precious\n")
    yolofs = Program(project)
    yolofs.start_session()
    return yolofs


def test_every_key_works_in_tmux(tmux: Tmux, yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "src/a.py").write_text(LINES.replace("line 2\n", "line two\n").replace("line 20\n", "line twenty\n"))
        (view / "gone.txt").unlink()
        yolofs("snapshot", "first")
        (view / "src/new.txt").write_text("one\ntwo\nthree\n")
        words = " ".join([*COMMAND, "review"])
        tmux.keys("echo shown before", "Enter")
        tmux.keys(f"cd {yolofs.project} && EDITOR='sed -i s/two/TWO/' {words}; echo ended with $?", "Enter")
        tmux.see("yolofs review: 3 changes", "-precious")

        tmux.keys("C-z")
        tmux.see("Stopped", gone="yolofs review")
        tmux.keys("fg; echo then ended with $?", "Enter")
        tmux.see("yolofs review: 3 changes", "-precious")
        tmux.keys("?")
        tmux.see("walk the generations")
        tmux.keys("Escape")
        tmux.see("-precious")
        tmux.keys("Down", "Down", "Down")
        tmux.see("+line two")
        tmux.keys("Tab", "Space")
        tmux.see("x┃+line two", "~   M a.py")
        tmux.keys("J", "y")
        tmux.see("x   M a.py", "1 accepted")
        tmux.keys("u")
        tmux.see("~   M a.py")
        tmux.keys("K", "e")
        tmux.see("edited a.py; u takes it back", "+line TWO")
        tmux.keys("u")
        tmux.see("taken back: the edit of a.py", "+line two")
        tmux.keys("Left", "/", "new", "Enter")
        tmux.see("+three")
        tmux.keys("s", "j", "Space")
        tmux.see("x┃+two", "~   A new.txt")
        tmux.keys("d")
        tmux.see("drop a line of src/new.txt?")
        tmux.keys("Tab", "Enter")
        tmux.see("dropped a line of src/new.txt", gone="+two")
        tmux.keys("u")
        tmux.see("taken back", "+two")
        tmux.keys("Left", *"[" * 12)
        tmux.see("[generation 1", gone="new.txt")
        tmux.keys(*"]" * 12)
        tmux.see("A new.txt", gone="[generation")
        tmux.keys("-")
        tmux.see("+src/ (2)")
        tmux.keys("=")
        tmux.see("A new.txt")
        tmux.keys("a")
        tmux.see("3 accepted")
        tmux.keys("q")
        tmux.see("leave all the same?")
        tmux.keys("n")
        tmux.see("space accept", gone="leave all the same")
        tmux.keys("Enter")
        tmux.see("this commit would apply 3 changes", "nothing else is staged", "enter commits")
        tmux.keys("Enter")
        tmux.see("commit 1 done; to take it back: yolofs undo 1", "nothing is staged")
        tmux.keys("q")
        tmux.see("then ended with 0", "shown before")  # the other screen has not hidden what was there before
    assert (yolofs.project / "src/new.txt").read_text() == "one\ntwo\nthree\n"
    assert (yolofs.project / "src/a.py").read_text().splitlines()[1] == "line two"
    assert not (yolofs.project / "gone.txt").exists()


def test_each_step_of_all_keys_works_in_tmux(tmux: Tmux, yolofs: Program) -> None:
    with yolofs.mounted() as view:
        every_key.prepare(yolofs, view)
        words = " ".join([*COMMAND, "review"])
        tmux.keys(f"cd {yolofs.project} && EDITOR='{every_key.EDITOR}' {words}; echo ended with $?", "Enter")
        tmux.see("yolofs review: 3 changes", "-precious")
        for step in every_key.STEPS:
            for key in step.keys:
                if key.startswith("text:"):
                    tmux("send-keys", "-t", "t", "-l", key.removeprefix("text:"))
                else:
                    tmux.keys(NAMES.get(key, key))
            tmux.see(*step.shown, gone=step.gone)
        tmux.keys("C-c")
        tmux.see("ended with 130")
