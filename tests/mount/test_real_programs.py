"""Real programs do in the view what they do in a plain directory, and leave the same behind.

The view is one of the real program, as a user has it: on base, with everything that the program
works on in it.  These have to be equal: the output, the tree after it, the tree with all its times
after a remount, and base after a commit; until then base stays as it was, to the last ctime.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.mount import programs
from tests.mount.manifest import Manifest, manifest, untouched
from tests.support.fault_points import points
from tests.support.program import Program

pytestmark = [pytest.mark.mount, pytest.mark.timeout(300)]


Case = Callable[[], Any]


def start(cases: Sequence[Case], directory: Path) -> subprocess.Popen[str]:
    """Begin to run cases in a directory, one after the other."""
    command = [sys.executable, "-P", programs.__file__, *(case.__name__ for case in cases)]
    return subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def result(process: subprocess.Popen[str]) -> Any:
    """Wait for the cases; return what came out of each."""
    out, err = process.communicate()
    assert process.returncode == 0, err
    return json.loads(out)


def comparable(root: Path) -> Manifest:
    """Return what has to be equal: git's index holds times and inode numbers, so it never is."""
    return {path: facts for path, facts in manifest(root).items() if not path.endswith(".git/index")}


def compare(cases: Sequence[Case], tmp_path: Path, settings: str = "") -> None:
    """Run cases on both sides and compare all there is to compare."""
    project, plain = tmp_path / "view", tmp_path / "plain"
    for directory in (project, plain):
        directory.mkdir()
        programs.prepare(directory)
    yolofs = Program(project)
    yolofs.start_session()
    for directory in (project, plain):
        (directory / ".yolofs.toml").write_text(settings)
    if settings:
        yolofs.trust()
    before = untouched(project)
    with yolofs.mounted() as root:
        processes = [start(cases, directory) for directory in (root, plain)]
        ours, theirs = map(result, processes)
        for case in cases:
            assert ours[case.__name__] == theirs[case.__name__], case.__name__
        tree = comparable(plain)
        assert comparable(root) == tree
        all_of_it = untouched(root)
    with yolofs.mounted() as root:
        assert untouched(root) == all_of_it, "after a remount"
        assert untouched(project) == before
        yolofs("commit", "--yes")
        assert comparable(project) == tree, "in base after a commit"
        assert comparable(root) == tree


TOGETHER: tuple[tuple[Case, ...], ...] = (
    (programs.git, programs.vim, programs.make),
    (
        programs.sqlite_in_rollback_mode,
        programs.sqlite_in_wal_mode,
        programs.shelves_of_a_process_pool,
        programs.rsync,
    ),
    (programs.tar, programs.pip, programs.saves_as_emacs_does),
)
"""Those of one group work on other files each: to fill two directories and compare them takes as
long as a case.
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "cases", points(TOGETHER, "programs", some=1), ids=lambda cases: "-".join(case.__name__ for case in cases)
)
def test_programs_do_the_same_as_in_a_plain_directory(tmp_path: Path, cases: Sequence[Case]) -> None:
    compare(cases, tmp_path)


@pytest.mark.slow
def test_programs_that_use_extended_attributes_do_what_they_do_on_a_disk(tmp_path: Path) -> None:
    drawn = points([programs.rsync, programs.tar], "attributes", some=1)
    settings = "[mount]\nxattrs = true\n"
    for number, cases in enumerate([[programs.rsync_of_xattrs, drawn[0]], *([case] for case in drawn[1:])]):
        (tmp_path / str(number)).mkdir()
        compare(cases, tmp_path / str(number), settings)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", [programs.npm, programs.pip_from_an_index])
def test_installers_do_the_same_as_in_a_plain_directory(tmp_path: Path, case: Case) -> None:
    compare([case], tmp_path)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_a_debian_package_builds_and_passes_its_tests_as_in_a_plain_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    fetch_debian_source("gzip", source)
    monkeypatch.setenv("YOLOFS_TEST_SOURCE", str(source))
    compare([programs.debian_package], tmp_path)


def fetch_debian_source(package: str, directory: Path) -> None:
    """Fetch the archives of a source package of Debian stable; apt's own lists and settings stay as
    they are.
    """
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (directory / "lists/partial").mkdir(parents=True)
    (directory / "cache/archives/partial").mkdir(parents=True)
    (directory / "sources.list").write_text(
        f"deb-src [signed-by={keyring}] http://deb.debian.org/debian bookworm main\n"
    )
    options = {
        "Dir::Etc::SourceList": directory / "sources.list",
        "Dir::Etc::SourceParts": "-",
        "Dir::State::Lists": directory / "lists",
        "Dir::Cache": directory / "cache",
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items())]
    for words in (["update"], ["source", "--download-only", package]):
        done = subprocess.run([*apt, *words], cwd=directory, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
