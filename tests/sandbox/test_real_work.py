"""Ordinary work in the sandbox needs no answer and leaves the real files as they were."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.program import Program

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
{sys.executable} -m pytest -q | tail -1
"""
WORK = {
    "git": (GIT, "1\n"),
    "gcc": (GCC, "built\n"),
    "node": ('echo \'require("fs").writeFileSync("out", "x"); console.log("ran")\' > p.js && node p.js', "ran\n"),
    "pytest": (PYTEST, "1 passed"),
    "venv": (f"{sys.executable} -m venv --without-pip env && env/bin/python -c 'print(\"venv\")'", "venv\n"),
}


@pytest.mark.parametrize("name", WORK)
def test_work_is_done_without_an_ask_and_staged(yolofs: Program, name: str) -> None:
    script, expected = WORK[name]
    before = sorted(path.name for path in yolofs.project.iterdir())
    asks = (yolofs.session / "audit.jsonl").read_text().count('"kind":"ask"') if _has_audit(yolofs) else 0
    done = yolofs("run", "sh", "-c", script)
    assert expected in done.out
    assert "yolofs: run " in done.err
    assert sorted(path.name for path in yolofs.project.iterdir()) == before
    assert ((yolofs.session / "audit.jsonl").read_text().count('"kind":"ask"') if _has_audit(yolofs) else 0) == asks


def _has_audit(yolofs: Program) -> bool:
    return Path(yolofs.session, "audit.jsonl").exists()
