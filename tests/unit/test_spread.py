"""The order in which tests are dealt out to several processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from tests.support.session_cleaning import sessions_removed
from tests.support.spread import long_ones_first


class Item:
    """What of a test the order goes by."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid

    def get_closest_marker(self, name: str) -> object:
        return self if name == "slow" and "slow" in self.nodeid else None


def ordered(processes: int, *names: str) -> list[str]:
    items = cast("list[pytest.Item]", [Item(name) for name in names])
    return [item.nodeid for item in long_ones_first(items, processes)]


def test_each_process_begins_with_its_share_of_what_takes_long() -> None:
    short = [f"tests/unit/test_a.py::test_{number}" for number in range(6)]
    long = ["tests/property/test_b.py::x", "tests/cli/test_c.py::slow", "tests/cli/test_c.py::y", "tests/crash/d.py::z"]
    found = ordered(2, *short, *long)
    assert found[:4] == [long[0], long[3], *short[:2]]
    assert found[5:8] == [*long[1:3], short[3]]
    assert sorted(found) == sorted([*short, *long])


@pytest.mark.parametrize("processes", [1, 3, 5, 40])
def test_every_test_is_run_once_however_many_processes_there_are(processes: int) -> None:
    names = [f"tests/{folder}/test_{number % 4}.py::{number}" for folder in ("crash", "unit") for number in range(9)]
    assert sorted(ordered(processes, *names)) == sorted(names)


def test_sessions_of_a_test_go_and_those_from_before_stay(tmp_path: Path) -> None:
    for part, name in (("registry", "1-old"), ("sessions", "old/store")):
        (tmp_path / "yolofs" / part / name).mkdir(parents=True)
    with sessions_removed(str(tmp_path)):
        (tmp_path / "yolofs/registry/2-new").write_text("")
        (tmp_path / "yolofs/sessions/new/store").mkdir(parents=True)
    assert os.listdir(tmp_path / "yolofs/registry") == ["1-old"]
    assert os.listdir(tmp_path / "yolofs/sessions") == ["old"]


def test_tests_are_compiled_once_and_for_all_processes(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    for name in ("tests/conftest.py", "tests/unit/test_paths.py", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, tmp_path / name)
    (tmp_path / "tests/conftest.py").write_text("")
    code = "import pathlib, sys\nfrom tests.support import spread\nspread.compile_tests(pathlib.Path(sys.argv[1]))"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=root, env=env, check=True)
    assert list(tmp_path.glob("tests/unit/__pycache__/test_paths.*-pytest-*.pyc"))
