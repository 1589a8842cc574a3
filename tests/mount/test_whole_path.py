"""The whole path once, on real files with real tools: stage, look, snapshot, travel, commit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.in_process import MountedView
from tests.support.looks import Described, everything_below
from tests.support.model_steps import how_many
from tests.support.seed import dice

pytestmark = [pytest.mark.mount, pytest.mark.timeout(600)]
Mounter = Callable[..., MountedView]

PACKAGES = ("json", "email", "asyncio", "logging", "unittest", "importlib")
STEPS = {
    "git": "git init -q . && git add -A && git commit -qm one && git status --porcelain | wc -l | grep -qx 0",
    "sed": "find . -name '*.py' -not -path './.git/*' | sort | head -200 | xargs sed -i 's/self/SELF/g'",
    "mv": "mv email post && mv post/mime mime && git status --porcelain | grep -q post",
    "rm": "rm -rf unittest",
    "tar": "tar cf /dev/stdout asyncio | (mkdir unpacked && tar xf - -C unpacked) && diff -r asyncio unpacked/asyncio",
    "compileall": "python3 -m compileall -q -j1 --invalidation-mode checked-hash json",
    "make": "mkdir c && printf 'int main(void){return 7;}\\n' > c/a.c"
    " && printf 'a: a.o\\n\\tcc -o a a.o\\na.o: a.c\\n\\tcc -c a.c\\n' > c/Makefile"
    " && make -s -C c && { ./c/a; test $? = 7; } && make -C c | grep -q 'up to date'",
    "sqlite": "sqlite3 t.db 'create table t(a); insert into t values(1),(2),(3);'"
    " && sqlite3 t.db 'pragma journal_mode=wal; delete from t where a=2; pragma integrity_check;' | grep -qx ok"
    " && sqlite3 t.db 'pragma journal_mode=delete; select count(*) from t' | grep -qx 2",
    "links": "ln json/__init__.py hard && ln -s json/decoder.py soft && echo >> hard && chmod 600 hard",
    "swap": "mv json/scanner.py x && mv json/tool.py json/scanner.py && mv x json/tool.py",
    "types": "rm json/decoder.py && mkdir json/decoder.py && touch json/decoder.py/f && rm -r mime && ln -s c mime",
}
ENVIRONMENT = os.environ | {
    "GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "SOURCE_DATE_EPOCH": "1000000000",
    "PYTHONDONTWRITEBYTECODE": "1",  # of what is imported from here: bytecode differs from one run to the next
}


def run(step: str, directory: str) -> None:
    """Run one step's commands."""
    done = subprocess.run(["sh", "-ec", STEPS[step]], cwd=directory, env=ENVIRONMENT, capture_output=True, check=False)
    assert done.returncode == 0, f"{step}: {done.stdout!r} {done.stderr!r}"


def comparable(found: Described) -> Described:
    """Leave out what differs from run to run: git's index holds inode numbers, the database a
    counter.
    """
    return {path: what for path, what in found.items() if path not in (".git/index", "t.db")}


@pytest.fixture
def library(base: Path) -> Path:
    """Base, holding some packages of the machine's Python library."""
    stdlib = Path(sysconfig.get_path("stdlib"))
    for package in PACKAGES:
        shutil.copytree(stdlib / package, base / package, ignore=shutil.ignore_patterns("__pycache__"))
    return base


def test_tools_do_the_same_as_on_a_plain_directory_and_base_stays(
    library: Path, mounted: Mounter, tmp_path: Path
) -> None:
    plain = tmp_path / "plain"
    shutil.copytree(library, plain, symlinks=True)
    before = everything_below(str(library))
    before_dirs = library.stat().st_mtime_ns
    view = mounted()
    root = os.fsdecode(view.mountpoint)
    library_mtime = library.stat().st_mtime_ns
    for step in STEPS:
        run(step, root)
        run(step, str(plain))
    assert comparable(everything_below(root, times=False)) == comparable(everything_below(str(plain), times=False))
    assert everything_below(str(library)) == before
    assert library.stat().st_mtime_ns == library_mtime >= before_dirs


def test_every_generation_can_be_reached_in_any_order_and_committed(library: Path, mounted: Mounter) -> None:
    view = mounted()
    root = os.fsdecode(view.mountpoint)
    generations = {0: everything_below(root)}
    for step in STEPS:
        run(step, root)
        generations[view.snapshot(step.encode())] = everything_below(root)
    drawing = dice("generations")
    present = max(generations)
    for _ in range(how_many(ci=5, nightly=300)):
        target = drawing.choice(sorted(generations))
        present = view.travel(target)
        assert everything_below(root) == generations[target], f"generation {target}"
        generations[present] = generations[target]
    view.remount()
    assert everything_below(root) == generations[present]
    last = len(STEPS)
    view.travel(last)
    (Path(root) / "unsaved").write_text("x")
    view.travel(3)
    view.travel("-")
    assert (Path(root) / "unsaved").read_text() == "x"

    with open(os.path.join(root, "json/encoder.py"), "r+b", buffering=0) as held:
        expected = everything_below(root)
        view.commit()
        assert everything_below(str(library)) == expected
        assert everything_below(root) == expected
        held.write(b"#")
        assert Path(root, "json/encoder.py").read_bytes()[:1] == b"#"
    assert everything_below(str(library)) == expected
    view.abort()
    assert everything_below(root) == expected == everything_below(str(library))
