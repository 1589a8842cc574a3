"""The compiled build: the same program from the same sources.  ``make test-compiled`` runs all
other tests on it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.program import COMMAND, Program

ROOT = Path(__file__).parents[2]


@pytest.mark.nightly
@pytest.mark.mount
@pytest.mark.timeout(900)
def test_the_compiled_build_can_be_installed_and_serves_a_mount(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([ROOT / "scripts/install-compiled.sh", venv], check=True)
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("one\n")
    yolofs = Program(project, (str(venv / "bin/python"), *COMMAND[1:]))
    yolofs.start_session()
    found = {finding["check"]: finding["message"] for finding in yolofs("doctor", "--json").json["findings"]}
    assert found["core"] == "compiled"
    with yolofs.mounted() as view:
        assert (view / "a.txt").read_text() == "one\n"
        (view / "a.txt").write_text("two\n")
        (view / "new").mkdir()
        (view / "a.txt").rename(view / "new/b.txt")
        yolofs("snapshot", "moved")
        (view / "new/b.txt").unlink()
        yolofs("travel", "moved")
        assert (view / "new/b.txt").read_text() == "two\n"
        with pytest.raises(FileNotFoundError):
            (view / "a.txt").stat()
        assert (project / "a.txt").read_text() == "one\n"
        yolofs("commit", "--yes")
    assert (project / "new/b.txt").read_text() == "two\n"
    assert not (project / "a.txt").exists()


def test_an_editable_install_is_refused_as_it_would_not_be_compiled(tmp_path: Path) -> None:
    command = [sys.executable, "setup.py", "editable_wheel", "--dist-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env={"YOLOFS_COMPILE": "1"}, check=False, capture_output=True, text=True)
    message = "YOLOFS_COMPILE=1: an editable install runs the sources as they are; leave out --editable\n"
    assert (done.returncode, done.stderr) == (1, message)
