"""Which compiled core a checkout takes: only one of the sources that are there."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from yolofs import checkout_core
from yolofs.cli.doctor import machine_checks
from yolofs.cli.show.finding_lines import CheckFinding

SUFFIX = EXTENSION_SUFFIXES[0]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout with a source whose compiled core is in build/core."""
    (tmp_path / "yolofs").mkdir()
    source = tmp_path / "yolofs/tree.py"
    source.write_text("x = 1\n")
    core = tmp_path / "build/core/yolofs"
    core.mkdir(parents=True)
    (core / f"_core__mypyc{SUFFIX}").touch()
    (core / f"tree{SUFFIX}").touch()
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    (core.parent / "SOURCES").write_text(f"{digest}  yolofs/tree.py\n")
    return tmp_path


@pytest.fixture(autouse=True)
def _choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(checkout_core.AS_IT_IS)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])


def finder_path(name: str) -> str | None:
    """Return where the first finder has the module loaded from."""
    found = sys.meta_path[0].find_spec(name, None)
    return None if found is None else found.origin


def test_modules_of_a_core_of_these_sources_are_found_and_no_others(checkout: Path) -> None:
    assert checkout_core.use(str(checkout))
    assert finder_path("yolofs.tree") == str(checkout / f"build/core/yolofs/tree{SUFFIX}")
    assert finder_path("yolofs._core__mypyc") == str(checkout / f"build/core/yolofs/_core__mypyc{SUFFIX}")
    assert finder_path("yolofs.other") is None


def test_a_core_of_other_sources_is_not_used_whatever_their_times(checkout: Path) -> None:
    source = checkout / "yolofs/tree.py"
    source.touch()
    assert checkout_core.use(str(checkout))
    source.write_text("x = 2\n")
    assert not checkout_core.use(str(checkout))
    source.unlink()
    assert not checkout_core.use(str(checkout))


@pytest.mark.parametrize("noted", ["", "nonsense\n", "\xe4\n"])
def test_a_core_that_does_not_tell_its_sources_is_not_used(checkout: Path, noted: str) -> None:
    (checkout / "build/core/SOURCES").write_text(noted)
    assert not checkout_core.use(str(checkout))


def test_a_core_of_another_python_is_not_used(checkout: Path) -> None:
    core = checkout / f"build/core/yolofs/_core__mypyc{SUFFIX}"
    core.rename(core.with_name("_core__mypyc.cpython-30.so"))
    assert checkout_core.find(str(checkout)) is None
    assert not checkout_core.use(str(checkout))


def test_the_environment_chooses_the_sources(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(checkout_core.AS_IT_IS, "python")
    assert not checkout_core.use(str(checkout))


def test_what_the_daemon_imports_before_it_chooses_is_not_of_the_core() -> None:
    code = "import sys, yolofs.daemon.__main__; print(*sorted(name for name in sys.modules if 'yolofs' in name))"
    done = subprocess.run([sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["yolofs", "yolofs.checkout_core", "yolofs.daemon", "yolofs.daemon.__main__"]


def core_finding(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> CheckFinding:
    """Return what doctor says of a core in that checkout."""
    core = str(checkout / "build/core")
    monkeypatch.setattr(machine_checks, "is_compiled", lambda: False)
    monkeypatch.setattr(checkout_core, "find", lambda: core)
    monkeypatch.setattr(checkout_core, "CHECKOUT", str(checkout))
    return next(finding for finding in machine_checks.check_machine() if finding.check == "core")


def test_doctor_tells_which_core_mounts_of_a_checkout_have(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert core_finding(checkout, monkeypatch).message == "compiled for mounts, in build/core; commands run the sources"
    monkeypatch.setenv(checkout_core.AS_IT_IS, "python")
    assert core_finding(checkout, monkeypatch).message == "pure Python, as YOLOFS_CORE says"
    (checkout / "yolofs/tree.py").write_text("x = 2\n")
    finding = core_finding(checkout, monkeypatch)
    assert finding.message == "pure Python, as sources have changed since build/core was compiled from them"
    assert finding.advice == "for a faster view: make setup, then mount again"
