"""What short commands import: time on a busy machine proves nothing, but what is not imported takes
none.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.program import Program

pytestmark = pytest.mark.mount

SLOW = {"rich", "trio", "prompt_toolkit", "watchfiles", "pyfuse3", "hashlib", "tempfile", "traceback", "tomli_w"}
SLOW |= {"uuid", "decimal", "platform", "textwrap", "msgspec.inspect"}
SLOW |= {"click", "dataclasses", "inspect", "typing_extensions", "shutil", "json", "urllib.parse", "pathlib"}
WITHOUT_A_STATE = SLOW | {"yolofs.session.session", "yolofs.rules"}
MODULES = """
from yolofs.cli.main import main
code = main(sys.argv[1:])
print(*sys.modules, file=sys.stderr)
sys.exit(code)
"""
LATE_MODULES = """
from yolofs.cli.main import main
from yolofs.cli.run.early_summary import EarlySummary
take = EarlySummary.take
before = set()
def noting(self):
    taken = take(self)
    before.update(sys.modules)
    return taken
EarlySummary.take = noting
code = main(sys.argv[1:])
print(*sorted(sys.modules.keys() - before), file=sys.stderr)
sys.exit(code)
"""
CLOSING_ONCE = """
import os
really_close = os.close
def close(fd):
    try:
        really_close(fd)
    except OSError:
        print("was closed before:", fd, file=sys.stderr)
        raise
os.close = close
from yolofs.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def said_by(script: str, yolofs: Program, *words: str) -> str:
    """Return what a script that runs the program writes to stderr."""
    return subprocess.run(
        [sys.executable, "-P", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{script}", *words],
        cwd=yolofs.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stderr


@pytest.mark.parametrize(
    ("words", "unwanted"),
    [
        (["run", "--", "true"], WITHOUT_A_STATE),
        (["run", "true"], WITHOUT_A_STATE),
        (["snapshot"], WITHOUT_A_STATE | {"subprocess"}),
        (["snapshot", "name"], WITHOUT_A_STATE | {"subprocess"}),
        (["status"], SLOW | {"yolofs.rules", "yolofs.changes.patch", "subprocess"}),
        (["diff"], SLOW | {"yolofs.rules", "yolofs.overlay", "yolofs.session.restore", "subprocess"}),
    ],
)
def test_a_short_command_imports_nothing_that_takes_long(yolofs: Program, words: list[str], unwanted: set[str]) -> None:
    imported = set(said_by(MODULES, yolofs, *words).split())
    assert "yolofs.daemon.rpc.client" in imported
    assert imported & unwanted == set()


@pytest.mark.parametrize("command", ["status", "diff"])
def test_the_mount_judges_a_few_changes_so_that_no_rules_are_imported(yolofs: Program, command: str) -> None:
    yolofs("run", "--no-review", "touch", "made")
    imported = said_by(MODULES, yolofs, command).split()
    assert SLOW.intersection(imported) == set()
    assert "yolofs.rules.book" not in imported
    assert "yolofs.cli.show.git_summary" not in imported  # nothing has changed in a .git


def test_a_diff_of_a_small_file_loads_no_openssl(yolofs: Program) -> None:
    yolofs("run", "--no-review", "sh", "-c", "echo text > made")
    imported = said_by(MODULES, yolofs, "diff").split()
    assert "yolofs.text.git_binary" in imported
    assert not {"hashlib", "_hashlib", "shlex"}.intersection(imported)


def test_what_a_summary_needs_is_imported_while_the_command_goes_on(yolofs: Program) -> None:
    changes = "touch made; sleep 0.5"  # the journal is looked at several times meanwhile, first after 0.05 seconds
    *said, late = said_by(LATE_MODULES, yolofs, "run", "sh", "-c", changes).splitlines()
    assert "  A  made" in said
    assert [name for name in late.split() if name.startswith("yolofs.")] == []


def test_every_descriptor_is_closed_once(yolofs: Program) -> None:
    """The second time it may be another one: of a thread, or of a library."""
    assert "was closed before" not in said_by(CLOSING_ONCE, yolofs, "run", "true")
