"""Ordinary work in the sandbox needs no answer and leaves the real files as they were."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fault_points import points
from tests.support.program import COMMAND, Program

pytestmark = [pytest.mark.mount, pytest.mark.slow]

GIT = """
git init -q -b main repo && cd repo && echo 1 > a && git add a
git -c user.name=u -c user.email=e commit -qm one && cd .. && git clone -q repo copy && cat copy/a
"""
GCC = """
printf '#include <stdio.h>\\nint main(void) { puts("built"); }\\n' > m.c
printf 'm: m.o\\n\\tgcc -o m m.o\\n' > Makefile
make -s CFLAGS=-O1 && ./m
"""
PYTEST = f"""
echo 'def test_it(tmp_path): (tmp_path / "f").write_text("x")' > test_it.py
PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest -q | tail -1
"""
PIP = f"""
python3 -c "import zipfile
with zipfile.ZipFile('local_wheel-1-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('local_wheel.py', 'print(\\'installed\\')')
    wheel.writestr('local_wheel-1.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: local-wheel\\nVersion: 1\\n')
    wheel.writestr('local_wheel-1.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr('local_wheel-1.dist-info/RECORD', '')"
{sys.executable} -m venv --without-pip env
{sys.executable} -m pip --python env/bin/python install -q --no-index ./local_wheel-1-py3-none-any.whl
env/bin/python -c 'import local_wheel'
"""
NPM = """
mkdir dep && echo '{"name": "dep", "version": "1.0.0", "main": "m.js"}' > dep/package.json
echo 'console.log("required")' > dep/m.js && (cd dep && npm pack --silent > /dev/null)
echo '{"name": "p"}' > package.json
npm install --silent --offline --no-audit --no-fund ./dep/dep-1.0.0.tgz && node -e 'require("dep")'
"""
PIP_INDEX = f"""
{sys.executable} -m venv env && env/bin/pip install -q six && env/bin/python -c 'import six; print(six.__name__)'
"""
NPM_REGISTRY = """
echo '{}' > package.json && npm install --silent --no-audit --no-fund is-odd && node -p 'require("is-odd")(3)'
"""
DEBIAN = """
dpkg-source -x hello/*.dsc src > /dev/null && cd src
FORCE_UNSAFE_CONFIGURE=1 ./configure -q && make -s && ./hello
"""
NIGHTLY = {
    "pip from the index": (PIP_INDEX, "six\n"),
    "npm from the registry": (NPM_REGISTRY, "true\n"),
    "a Debian source package": (DEBIAN, "Hello, world!\n"),
}
WORK = {
    "git": (GIT, "1\n"),
    "gcc": (GCC, "built\n"),
    "node": ('echo \'require("fs").writeFileSync("out", "x"); console.log("ran")\' > p.js && node p.js', "ran\n"),
    "pytest": (PYTEST, "1 passed"),
    "pip": (PIP, "installed\n"),
    "npm": (NPM, "required\n"),
    "venv": (f"{sys.executable} -m venv --without-pip env && env/bin/python -c 'print(\"venv\")'", "venv\n"),
}


@pytest.mark.parametrize("name", points(list(WORK), "real work", some=1))
def test_work_is_done_without_an_ask_and_staged(yolofs: Program, name: str) -> None:
    check(yolofs, *WORK[name])


@pytest.fixture
def source_package(yolofs: Program) -> Path:
    """Return a directory of the project with the source package hello, got by apt with files of its
    own.
    """
    directory = yolofs.project / "hello"
    apt = directory.parent.parent / "apt"
    for path in (directory, apt / "lists/partial", apt / "cache/archives/partial"):
        path.mkdir(parents=True, exist_ok=True)
    (apt / "sources").write_text(
        "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian "
        f"{platform.freedesktop_os_release()['VERSION_CODENAME']} main\n"
    )
    options = [f"Dir::Etc::sourcelist={apt}/sources", "Dir::Etc::sourceparts=-", f"Dir::State::lists={apt}/lists"]
    options += [f"Dir::Cache={apt}/cache", "APT::Sandbox::User=root"]
    command = ["apt-get", "-q", *(word for option in options for word in ("-o", option))]
    for words in (["update"], ["source", "--download-only", "hello"]):
        subprocess.run([*command, *words], cwd=directory, check=True, capture_output=True, timeout=300)
    return directory


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", NIGHTLY)
def test_work_that_needs_the_network_is_done_without_an_ask_too(
    yolofs: Program, name: str, request: pytest.FixtureRequest
) -> None:
    if "hello" in NIGHTLY[name][0]:
        request.getfixturevalue("source_package")
    check(yolofs, *NIGHTLY[name])


def check(yolofs: Program, script: str, expected: str) -> None:
    before = sorted(path.name for path in yolofs.project.iterdir())
    asks = (yolofs.session / "audit.jsonl").read_text().count('"kind":"ask"') if _has_audit(yolofs) else 0
    done = subprocess.run(
        [*COMMAND, "run", "sh", "-c", script],
        cwd=yolofs.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert expected in done.stdout, done.stderr
    assert "yolofs: run " in done.stderr
    assert sorted(path.name for path in yolofs.project.iterdir()) == before
    assert ((yolofs.session / "audit.jsonl").read_text().count('"kind":"ask"') if _has_audit(yolofs) else 0) == asks


def _has_audit(yolofs: Program) -> bool:
    return Path(yolofs.session, "audit.jsonl").exists()
