"""Short commands take what they import from one file, and never anything but what is there now."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILE = "yolofs/cli/__pycache__/short_commands_bytecode.*.pyc"
TELLS = """
import os
from yolofs.cli import main
def leave(code):
    loaders = {name: getattr(getattr(module, "__spec__", None), "loader", None) for name, module in sys.modules.items()}
    kept = [name for name, loader in loaders.items() if type(loader).__name__ == "_KeptLoader"]
    sys.stderr.write("".join(f"{name} {sys.modules[name].__file__}\\n" for name in kept))
    sys.stderr.flush()
    really_leave(code)
really_leave, os._exit = os._exit, leave
main.program()
"""


class Copy:
    """A copy of yolofs, with a session that has nothing staged."""

    def __init__(self, place: Path) -> None:
        self.place = place / "copy"
        self.place.mkdir()
        for name in ("yolofs", "cli", "config", "daemon"):
            shutil.copytree(ROOT / name, self.place / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        self.project = place / "project"
        self.project.mkdir()
        self("init")

    def __call__(
        self, word: str, env: Mapping[str, str] | None = None, place: Path | None = None
    ) -> tuple[str, dict[str, str]]:
        """Run a command; return its output, and where what it took from the file says it is."""
        libraries = [path for path in sys.path if path.endswith("-packages")]
        script = f"import sys; sys.path[:0] = {[str(place or self.place), *libraries]!r}\n{TELLS}"
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        done = subprocess.run(
            [sys.executable, "-P", "-c", script, word],
            cwd=self.project,
            env=environment | dict(env or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        lines = [line.split(" ") for line in done.stderr.splitlines() if line.startswith(("yolofs.", "ctypes "))]
        return done.stdout, dict(lines)

    def files(self) -> list[Path]:
        return list(self.place.glob(FILE))


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path)


def test_the_second_command_takes_its_modules_from_the_file_that_the_first_wrote(copy: Copy) -> None:
    first, taken = copy("status")
    assert taken == {}
    assert len(copy.files()) == 1
    again, taken = copy("status")
    assert again == first
    assert taken["yolofs.session.session"] == str(copy.place / "yolofs/session/session.py")


def test_a_changed_source_is_what_runs(copy: Copy) -> None:
    copy("status")
    source = copy.place / "cli/without_click/status.py"
    source.write_text(source.read_text() + "\nemit('edited')\n")
    assert copy("status")[0].startswith("edited\n")
    out, taken = copy("status")
    assert out.startswith("edited\n")
    assert "yolofs.cli.without_click.status" in taken


def test_a_copied_directory_runs_its_own_sources(copy: Copy, tmp_path: Path) -> None:
    copy("status")
    other = tmp_path / "other"
    shutil.copytree(copy.place, other, symlinks=True)
    taken = copy("status", place=other)[1]
    assert {name: path for name, path in taken.items() if path.startswith(str(copy.place))} == {}
    again = copy("status", place=other)[1]
    assert again["yolofs.session.session"] == str(other / "yolofs/session/session.py")


def test_directories_of_pythonpath_go_before_the_standard_library(copy: Copy, tmp_path: Path) -> None:
    copy("status")
    assert "ctypes" in copy("status")[1]
    assert "ctypes" not in copy("status", {"PYTHONPATH": str(tmp_path)})[1]


def test_a_file_that_was_cut_off_is_written_anew(copy: Copy) -> None:
    first, _ = copy("status")
    (file,) = copy.files()
    whole = file.read_bytes()
    file.write_bytes(whole[:-100])
    assert copy("status") == (first, {})
    assert copy("status")[1] != {}


def test_nothing_is_written_where_python_may_write_no_bytecode(copy: Copy) -> None:
    copy("status", {"PYTHONDONTWRITEBYTECODE": "1"})
    assert copy.files() == []
