"""The wheel holds the whole program and nothing else, and works where the checkout is not at
hand.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

import msgspec
import pytest

import yolofs

ROOT = Path(__file__).parents[2]
IMPORT_ALL = """
import importlib, pkgutil, yolofs
for module in pkgutil.walk_packages(yolofs.__path__, "yolofs."):
    if not module.name.endswith(".__main__"):  # importing that would start the program
        importlib.import_module(module.name)
    print(module.name)
print(yolofs.__file__)
"""

pytestmark = [pytest.mark.install, pytest.mark.timeout(600)]


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command that has to succeed, without the caller's PYTHON… settings; return its
    output.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["YOLOFS_COMPILE"] = "0"  # what is compiled: test_wheels.py, test_compiled.py
    done = subprocess.run(command, cwd=cwd, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy, so that the checkout stays free of build/."""
    source = tmp_path_factory.mktemp("source") / "yolofs"
    ignored = shutil.ignore_patterns(".*_cache", ".venv", ".git", ".hypothesis", "build", "dist", "*.egg-info")
    shutil.copytree(ROOT, source, symlinks=True, ignore=ignored)
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source)]
    run(*command, cwd=source)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into a venv of its own, which borrows the dependencies of this one; return
    its bin.
    """
    place = tmp_path_factory.mktemp("venv")
    venv.create(place, symlinks=True)
    python = place / "bin/python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    run(*command, cwd=place)
    (packages,) = place.glob("lib/python*/site-packages")
    dependencies = Path(msgspec.__file__).parent.parent  # this one may have borrowed them itself
    (packages / "borrowed.pth").write_text(str(dependencies))  # its own .pth files are not read
    return place / "bin"


def modules() -> set[str]:
    """Return the path of every module in the checkout, as it has to be in the wheel."""
    tops = {"yolofs": "yolofs", "cli": "yolofs/cli", "config": "yolofs/config", "daemon": "yolofs/daemon"}
    found = set()
    for top, place in tops.items():
        for directory, _, names in os.walk(ROOT / top):  # does not follow the links
            below = Path(place) / Path(directory).relative_to(ROOT / top)
            found |= {str(below / name) for name in names if name.endswith(".py")}
    return found


def test_the_wheel_holds_every_module_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    page = f"yolofs-{yolofs.__version__}.data/data/share/man/man1/yolofs.1"
    zsh = {"yolofs/cli/run/zsh/.zshenv", "yolofs/cli/run/zsh/.zshrc"}
    assert names == modules() | {"yolofs/py.typed", page} | zsh


def test_every_module_imports_from_the_installed_wheel(installed: Path, tmp_path: Path) -> None:
    *names, origin = run(installed / "python", "-P", "-W", "error", "-c", IMPORT_ALL, cwd=tmp_path).splitlines()
    assert Path(origin).is_relative_to(installed.parent)
    wanted = {path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in modules()}
    assert {*names, "yolofs"} == wanted


def test_the_installed_command_knows_its_version(installed: Path, tmp_path: Path) -> None:
    assert yolofs.__version__ in run(installed / "yolofs", "--version", cwd=tmp_path)


def test_setup_says_which_package_pyfuse3_lacks_and_how_to_get_it() -> None:
    """As an ordinary user, who cannot have it installed: pyfuse3 would fail later, in words of its
    own.
    """
    place = Path(tempfile.mkdtemp())
    try:
        place.chmod(0o755)
        (place / "scripts").mkdir()
        for name in ("scripts/setup.sh", "pyproject.toml"):
            shutil.copy(ROOT / name, place / name)
        done = subprocess.run(
            ["bash", "scripts/setup.sh"],
            cwd=place,
            env={"PATH": os.environ["PATH"], "PKG_CONFIG_LIBDIR": "/nowhere"},
            user=65534 if os.geteuid() == 0 else None,
            extra_groups=[] if os.geteuid() == 0 else None,
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1
        assert "these Debian packages are missing; install them and run this again:" in done.stderr
        assert re.search(r"sudo apt-get update && sudo apt-get install -y .*\blibfuse3-dev\b", done.stderr)
        assert not (place / ".venv").exists()
    finally:
        shutil.rmtree(place)
