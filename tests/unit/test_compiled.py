"""What is told of a core that was compiled."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from yolofs.cli.doctor import machine_checks
from yolofs.cli.show.finding_lines import Health
from yolofs.compiled import stale_sources

SUFFIX = ".cpython-311-x86_64-linux-gnu.so"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a package that was compiled after its sources were written."""
    package = tmp_path / "yolofs"
    (package / "state").mkdir(parents=True)
    for name, changed_ns in (("tree.py", 1), (f"tree{SUFFIX}", 2), ("plain.py", 3), (f"_core__mypyc{SUFFIX}", 2)):
        (package / "state" / name).touch()
        os.utime(package / "state" / name, ns=(changed_ns, changed_ns))
    return package


def test_what_was_compiled_after_its_source_is_not_stale(package: Path) -> None:
    assert stale_sources(str(package)) == []


def test_a_source_that_was_changed_since_is_stale(package: Path) -> None:
    source = package / "state/tree.py"
    os.utime(source, ns=(3, 3))
    assert stale_sources(str(package)) == [str(source)]


def install(package: Path) -> None:
    """Note the contents of the package's files, as an installer does."""
    notes = package.parent / f"{package.name}-1.0.dist-info"
    notes.mkdir()
    (notes / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package.name}\nVersion: 1.0\n")
    lines = []
    for path in sorted(package.rglob("*.*")):
        digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
        lines.append(f"{path.relative_to(package.parent)},sha256={digest},{path.stat().st_size}\n")
    (notes / "RECORD").write_text("".join(lines))


def test_what_an_installer_wrote_is_not_stale_in_whatever_order_it_wrote(package: Path) -> None:
    install(package)
    os.utime(package / "state/tree.py", ns=(3, 3))
    assert stale_sources(str(package)) == []


def test_what_was_changed_after_the_install_is_stale_whatever_its_time(package: Path) -> None:
    install(package)
    source = package / "state/tree.py"
    source.write_text("x = 1\n")
    os.utime(source, ns=(1, 1))
    assert stale_sources(str(package)) == [str(source)]
    source.unlink()
    assert stale_sources(str(package)) == [str(source)]


def test_doctor_tells_of_a_stale_compiled_core(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = package / "state/tree.py"
    os.utime(source, ns=(3, 3))
    monkeypatch.setattr(machine_checks, "PACKAGE", str(package))
    finding = next(finding for finding in machine_checks.check_machine() if finding.check == "core")
    assert finding.level is Health.WARN
    assert finding.message == f"{source} has changed since it was compiled, so the older version runs"
    assert finding.advice == "install yolofs again, or remove the .so beside it"


EXTENDED = """
import importlib, pkgutil, re, sys
import msgspec, yolofs
text = open("setup.py").read()
paths = re.findall(r'^    "(yolofs/[^"]+[.]py)",$', text, re.M)
compiled = {path.removesuffix(".py").replace("/", ".") for path in paths}
assert len(compiled) > 30
for module in pkgutil.walk_packages(yolofs.__path__, "yolofs."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
for name in sorted(compiled):
    for one in vars(sys.modules[name]).values():
        if not isinstance(one, type) or one.__module__ != name or issubclass(one, (tuple, msgspec.Struct, OSError)):
            continue
        for below in one.__subclasses__():
            if below.__module__ not in compiled:
                print(f"{below.__module__}.{below.__name__}")
"""
"""Prints the classes that extend one of the compiled core and are not in it."""


def test_no_class_that_is_not_compiled_extends_one_that_is() -> None:
    """mypyc forbids it, which shows in the compiled core only when the class is made use of."""
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", EXTENDED], cwd=root, check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
