"""A session over the whole machine, mounted once for all tests of a file."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program, connected
from tests.support.repositories import git


@pytest.fixture(scope="session", autouse=True)
def bubblewrap() -> None:
    """Without bubblewrap there is nothing to test; where the mount is required, so is the
    sandbox.
    """
    if shutil.which("bwrap") is None:
        if os.environ.get("YOLOFS_REQUIRE_MOUNT") == "1":
            pytest.fail("YOLOFS_REQUIRE_MOUNT=1, but bubblewrap is not installed", pytrace=False)
        pytest.skip("bubblewrap is not installed")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, traces: object) -> Iterator[Program]:
    """Return the program in a project of its own, with the view of / mounted."""
    project = tmp_path_factory.mktemp("sandbox") / "project"
    project.mkdir()
    (project / ".yolofs.toml").write_text("scratch = []\n")  # where all of this happens would be some
    program = Program(project)
    program.start_session()
    with program.mounted("--root", "/"):
        program.wait_for_watcher()
        yield program


@pytest.fixture
def yolofs(shared: Program) -> Iterator[Program]:
    """Return the program in the project, with nothing staged at the end."""
    yield shared
    with connected(shared) as client:
        client.travel("base", force=True)


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """Return a directory beside all projects that programs may change.

    It does not lie in /tmp, of which each run has its own.
    """
    caches = Path.home() / ".cache"
    caches.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="yolofs-test.", dir=caches) as directory:
        yield Path(directory)


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Program]:
    """Return the program in a git repository of its own, with the view of / mounted."""
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / ".yolofs.toml").write_text("scratch = []\n")
    (project / ".gitignore").write_text("build/\n*.log\n.venv/\n")
    for name in ("one", "two", "three"):
        (project / f"src/{name}.py").write_text(f"{name} = 1\n")
    git(project, "init", "-q", "-b", "main")
    with (project / ".git/config").open("a") as config:
        config.write("[user]\n\tname = n\n\temail = n@example.org\n")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "first")
    program = Program(project)
    program.start_session()
    with program.mounted("--root", "/"):
        yield program
