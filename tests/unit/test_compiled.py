"""What is told of a core that was compiled."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from yolofs.cli import doctor_checks
from yolofs.compiled import stale_sources

SUFFIX = ".cpython-311-x86_64-linux-gnu.so"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a package that was compiled after its sources were written."""
    (tmp_path / "state").mkdir()
    for name, changed_ns in (("tree.py", 1), (f"tree{SUFFIX}", 2), ("plain.py", 3), (f"_core__mypyc{SUFFIX}", 2)):
        (tmp_path / "state" / name).touch()
        os.utime(tmp_path / "state" / name, ns=(changed_ns, changed_ns))
    return tmp_path


def test_what_was_compiled_after_its_source_is_not_stale(package: Path) -> None:
    assert stale_sources(str(package)) == []


def test_a_source_that_was_changed_since_is_stale(package: Path) -> None:
    source = package / "state/tree.py"
    os.utime(source, ns=(3, 3))
    assert stale_sources(str(package)) == [str(source)]


def test_doctor_tells_of_it(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = package / "state/tree.py"
    os.utime(source, ns=(3, 3))
    monkeypatch.setattr(doctor_checks, "PACKAGE", str(package))
    finding = next(finding for finding in doctor_checks.check_machine() if finding.check == "core")
    assert finding.level is doctor_checks.Level.WARN
    assert finding.message == f"{source} has changed since it was compiled, so the older version runs"
    assert finding.advice == "install yolofs again, or remove the .so beside it"
