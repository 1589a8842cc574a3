"""A mount goes on after yolofs was upgraded: no command of another version changes the session
beside it.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterator

import msgspec
import pytest

from tests.support.looks import tree_of
from tests.support.program import Program, run_code
from yolofs.commit.plan import plan
from yolofs.daemon.rpc import protocol, run_messages
from yolofs.daemon.rpc.revision import REVISION
from yolofs.journal import records

_OTHER = """
import sys
import yolofs
from yolofs.daemon.rpc import revision
{change}
from yolofs.cli import main
sys.argv[0] = "yolofs"
main.program()
"""
LATER = _OTHER.format(change="revision.REVISION += 1")
RELEASED = _OTHER.format(change="revision.__version__ = '77.0'")
DAEMON = 11
WAY_OUT = "hint: yolofs unmount && yolofs mount"


@pytest.fixture
def mounted(yolofs: Program) -> Iterator[Program]:
    with yolofs.mounted("--root", ".") as mountpoint:
        (mountpoint / "first").write_text("1\n")
        yolofs("commit", "--yes")
        (mountpoint / "staged").write_text("kept\n")
        yield yolofs


def upgraded(program: Program, *words: str, code: str = LATER) -> subprocess.CompletedProcess[str]:
    """Run a command of a version that is not the daemon's."""
    return run_code(code, words, program.project)


@pytest.mark.mount
@pytest.mark.parametrize(
    "words",
    [
        ("commit", "--yes"),
        ("commit", "--yes", "--ours"),
        ("undo", "--yes"),
        ("abort", "--yes"),
        ("gc", "--generations"),
        ("restore", "--from", "base", "staged"),
    ],
)
@pytest.mark.some(3)
def test_commands_that_change_the_session_are_refused_with_the_way_out(
    mounted: Program, words: tuple[str, ...]
) -> None:
    before = tree_of(mounted.project), mounted("log", "--json").out
    done = upgraded(mounted, *words)
    assert done.returncode == DAEMON, done
    assert "an earlier state of yolofs" in done.stderr
    assert "nothing was changed" in done.stderr
    assert WAY_OUT in done.stderr
    assert (tree_of(mounted.project), mounted("log", "--json").out) == before
    assert "staged" in mounted("status").out


@pytest.mark.mount
def test_after_an_upgrade_unmount_and_commit_make_the_session_usable(mounted: Program) -> None:
    for words in (("unmount",), ("commit", "--yes")):
        done = upgraded(mounted, *words)
        assert done.returncode == 0, done
    assert (mounted.project / "staged").read_text() == "kept\n"
    mounted("mount", "--root", ".")
    assert not mounted("status").err


@pytest.mark.mount
@pytest.mark.parametrize("words", [("status",), ("mount",)])
def test_commands_that_only_read_warn_of_both_versions(mounted: Program, words: tuple[str, ...]) -> None:
    done = upgraded(mounted, *words, code=RELEASED)
    assert done.returncode == 0, done
    assert "serves the mount, and this is yolofs 77.0; nothing can be committed" in done.stderr


@pytest.mark.mount
def test_doctor_names_the_other_version(mounted: Program) -> None:
    found = json.loads(upgraded(mounted, "doctor", "--json", code=RELEASED).stdout)
    assert "this is yolofs 77.0" in json.dumps(found)


@pytest.mark.mount
def test_a_daemon_that_tells_no_revision_is_of_an_earlier_version(mounted: Program) -> None:
    described = mounted.session / "daemon.json"
    told = json.loads(described.read_text())
    del told["revision"]
    described.write_text(json.dumps(told))
    said = mounted.refused("commit", "--yes", code=DAEMON)
    assert f"(revision 0, and this is revision {REVISION})" in said
    assert WAY_OUT in said


SHAPES = {1: "91cb9cce545cf5f4"}


def test_the_structures_of_journal_plan_and_socket_change_only_with_the_revision() -> None:
    """If this fails: raise REVISION, and write down the new digest beside it."""
    shapes = [
        f"{module.__name__}.{name}{value.__annotations__}"
        for module in (records, plan, protocol, run_messages)
        for name, value in sorted(vars(module).items())
        if isinstance(value, type) and issubclass(value, msgspec.Struct) and value.__module__ == module.__name__
    ]
    assert len(shapes) > 40
    assert {REVISION: hashlib.sha256("\n".join(shapes).encode()).hexdigest()[:16]} == SHAPES
