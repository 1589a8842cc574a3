"""What is compiled while a wheel is built, and what is not: with a core of one module, as the whole
one takes minutes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
CORE = "yolofs/paths.py"

pytestmark = [pytest.mark.install, pytest.mark.slow, pytest.mark.timeout(600)]

REFUSES = """\
#!/bin/sh
# Compiles the headers, and nothing else.
case "$*" in *headers.c*) exec cc "$@" ;; esac
echo "no space left on device" >&2
exit 1
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the sources with a small core, which need not become fast."""
    place = tmp_path_factory.mktemp("source") / "yolofs"
    for name in ("yolofs", "cli", "config", "daemon"):
        shutil.copytree(ROOT / name, place / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, place)
    (place / "docs").mkdir()
    shutil.copy(ROOT / "docs/yolofs.1", place / "docs")
    text = (place / "setup.py").read_text()
    small = re.sub(r"^COMPILED = \[.*?^\]", f"COMPILED = [{CORE!r}]", text, flags=re.MULTILINE | re.DOTALL)
    assert small != text
    quick = small.replace('opt_level="2"', 'opt_level="0"')
    assert quick != small
    (place / "setup.py").write_text(quick)
    return place


@pytest.fixture
def fresh(source: Path, tmp_path: Path) -> Path:
    """Return a copy of that in which nothing was built yet."""
    return Path(shutil.copytree(source, tmp_path / "yolofs", symlinks=True))


@pytest.fixture
def refusing(tmp_path: Path) -> str:
    """Return a compiler that is there, and fails."""
    (tmp_path / "refusing").write_text(REFUSES)
    (tmp_path / "refusing").chmod(0o755)
    return str(tmp_path / "refusing")


def build(source: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Build the wheel, whatever comes of it."""
    usual = {name: value for name, value in os.environ.items() if name not in ("YOLOFS_COMPILE", "CC")}
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(source / "dist"),
        str(source),
    ]
    return subprocess.run(command, env=usual | env, check=False, capture_output=True, text=True)


def built(source: Path) -> tuple[str, set[str]]:
    """Return the name of the wheel that was built, and the extensions in it."""
    (wheel,) = (source / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert CORE in names
    return wheel.name, {name for name in names if name.endswith(".so")}


def test_the_core_is_compiled_where_that_can_be_done(fresh: Path) -> None:
    done = build(fresh)
    assert done.returncode == 0, done.stdout + done.stderr
    name, extensions = built(fresh)
    assert {f"yolofs/paths{SUFFIX}", f"yolofs/_core__mypyc{SUFFIX}"} <= extensions
    assert "none-any" not in name


def test_whoever_wants_no_compiled_core_gets_a_wheel_for_all_machines(fresh: Path) -> None:
    done = build(fresh, YOLOFS_COMPILE="0")
    assert done.returncode == 0, done.stdout + done.stderr
    name, extensions = built(fresh)
    assert name.endswith("-py3-none-any.whl")
    assert not extensions


def test_without_a_compiler_a_wheel_is_built_uncompiled_and_one_line_says_so(fresh: Path) -> None:
    done = build(fresh, CC="/not-there/cc")
    assert done.returncode == 0, done.stdout + done.stderr
    assert built(fresh)[0].endswith("-py3-none-any.whl")
    said = [line for line in done.stderr.splitlines() if line.startswith("yolofs:")]
    assert said == ["yolofs: the core is not compiled, and slower: there is no C compiler (/not-there/cc)"]


def test_a_wheel_whose_compiling_failed_is_uncompiled_and_has_no_part_of_the_core(fresh: Path, refusing: str) -> None:
    done = build(fresh, CC=refusing)
    assert done.returncode == 0, done.stdout + done.stderr
    name, extensions = built(fresh)
    assert name.endswith("-py3-none-any.whl")
    assert not extensions
    assert done.stderr.count("yolofs: the core is not compiled, and slower: CompileError: ") == 1


@pytest.mark.parametrize("compiler", ["/not-there/cc", pytest.param(None, marks=pytest.mark.nightly)])
def test_whoever_insists_on_a_compiled_core_gets_no_other_wheel(
    fresh: Path, refusing: str, compiler: str | None
) -> None:
    done = build(fresh, YOLOFS_COMPILE="1", CC=compiler or refusing)
    assert done.returncode != 0
    assert "YOLOFS_COMPILE=1: the core cannot be compiled: " in done.stdout + done.stderr
    assert not list(fresh.glob("dist/*.whl"))


def test_an_unknown_value_of_yolofs_compile_is_told(fresh: Path) -> None:
    done = build(fresh, YOLOFS_COMPILE="yes")
    assert done.returncode != 0
    assert 'YOLOFS_COMPILE: expected "0", "1" or "auto", got "yes"' in done.stdout + done.stderr


ASK = "import setuptools.build_meta as backend; print(*backend.get_requires_for_build_wheel())"


@pytest.mark.parametrize(
    ("env", "wants_mypy"), [({}, True), ({"YOLOFS_COMPILE": "0"}, False), ({"CC": "/not-there/cc"}, False)]
)
def test_mypy_is_got_for_the_build_only_where_something_is_compiled(
    fresh: Path, env: dict[str, str], wants_mypy: bool
) -> None:
    usual = {name: value for name, value in os.environ.items() if name not in ("YOLOFS_COMPILE", "CC")}
    done = subprocess.run(
        [sys.executable, "-c", ASK], cwd=fresh, env=usual | env, check=True, capture_output=True, text=True
    )
    assert ("mypy" in done.stdout.splitlines()[-1]) is wants_mypy


def test_an_editable_install_runs_the_sources_whatever_was_compiled_beside_them(fresh: Path, tmp_path: Path) -> None:
    """So it cannot be of an older source."""
    command = [sys.executable, "setup.py", "editable_wheel", "--dist-dir", str(tmp_path / "dist")]
    subprocess.run(command, cwd=fresh, check=True, capture_output=True)
    assert not list(fresh.rglob("*.so"))


WHERE = "from yolofs import checkout_core; checkout_core.use(); from yolofs import paths; print(paths.__file__)"


@pytest.fixture
def checkout(fresh: Path) -> Path:
    """Return a copy that is set up, but for the core."""
    shutil.copytree(ROOT / "scripts", fresh / "scripts")
    (fresh / ".venv").symlink_to(ROOT / ".venv")
    return fresh


def compile_core(checkout: Path, **env: str) -> str:
    """Compile the core of a checkout, if it can be; return the output."""
    usual = {name: value for name, value in os.environ.items() if name not in ("YOLOFS_COMPILE", "CC")}
    command = [str(checkout / "scripts/compile-core.sh")]
    done = subprocess.run(command, env=usual | env, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def core_in_use(checkout: Path) -> Path:
    """Return where a daemon of a checkout loads a module of the core from."""
    env = os.environ | {"PYTHONPATH": str(checkout), "YOLOFS_CORE": ""}
    command = [str(ROOT / ".venv/bin/python"), "-c", WHERE]
    done = subprocess.run(command, cwd="/", env=env, check=True, capture_output=True, text=True)
    return Path(done.stdout.strip()).relative_to(checkout)


def test_setup_compiles_the_core_of_a_checkout_for_as_long_as_its_sources_stay(checkout: Path) -> None:
    assert core_in_use(checkout) == Path(CORE)
    said = "setup: compiling the core into build/core (two to four minutes; YOLOFS_COMPILE=0 leaves it out)\n"
    assert compile_core(checkout) == said
    assert core_in_use(checkout) == Path(f"build/core/yolofs/paths{SUFFIX}")
    assert compile_core(checkout) == ""
    assert not list((checkout / "yolofs").rglob("*.so"))
    with (checkout / CORE).open("a") as source:
        source.write("# edited\n")
    assert core_in_use(checkout) == Path(CORE)
    assert compile_core(checkout, YOLOFS_COMPILE="0") == ""
    assert core_in_use(checkout) == Path(CORE)


@pytest.mark.parametrize(
    ("compiler", "why"),
    [
        ("/not-there/cc", "there is no C compiler (/not-there/cc)"),
        pytest.param(None, "CompileError: ", marks=pytest.mark.nightly),
    ],
)
def test_setup_goes_on_without_a_compiled_core_and_says_so_in_one_line(
    checkout: Path, refusing: str, compiler: str | None, why: str
) -> None:
    first, second = compile_core(checkout, CC=compiler or refusing).splitlines()
    assert first.startswith("setup: compiling the core")
    assert second.startswith(f"setup: the core is not compiled, and slower: {why}")
    assert core_in_use(checkout) == Path(CORE)
    assert not (checkout / "build/core").exists()
