"""The host takes something away while a commit works out what base would become."""

from __future__ import annotations

import os

import pytest

from tests.support.program import Program, run_code

NOT_PREPARED = 17
CONFLICT = 9
_TAKEN_AWAY = """
import os, sys
import {module} as module
from yolofs.cli import main

def beside_the_host(*words, **options):
    global calls
    calls += 1
    if calls == {at_call}:
        os.unlink({path!r})
    return really(*words, **options)

calls = 0
really = module.{name}
module.{name} = beside_the_host
sys.argv[0] = "yolofs"
main.program()
"""


def taking_away(path: os.PathLike[str], module: str, name: str, *, at_call: int = 1) -> str:
    """Return code that runs the program while the host removes a file just before a call of a
    function.
    """
    return _TAKEN_AWAY.format(module=module, name=name, path=os.fspath(path), at_call=at_call)


@pytest.mark.mount
@pytest.mark.parametrize(
    "words",
    [
        ("commit", "--yes"),
        ("commit", "--yes", "--ours"),
        ("commit", "--yes", "--up-to", "first"),
        ("commit", "--dry-run"),
    ],
    ids=" ".join,
)
def test_a_file_that_goes_while_the_plan_is_made_is_named_and_nothing_is_done(
    yolofs: Program, words: tuple[str, ...]
) -> None:
    """The view has renamed it, so it is looked for in base."""
    path = yolofs.project / "a.txt"
    content = path.read_bytes()
    with yolofs.mounted() as view:
        (view / "a.txt").rename(view / "renamed")
        yolofs("snapshot", "first")
    module = "yolofs.cli.commit.dry_run" if "--dry-run" in words else "yolofs.session.commit"
    done = run_code(taking_away(path, module, "plan_commit"), words, yolofs.project)
    assert done.returncode == NOT_PREPARED, done
    assert f"nothing is committed: another program has just taken {path} away" in done.stderr
    assert "hint: when that program is done: yolofs commit" in done.stderr
    path.write_bytes(content)
    yolofs("commit", "--yes", "--ours")
    assert (yolofs.project / "renamed").read_bytes() == content


@pytest.mark.mount
def test_theirs_says_what_it_dropped_though_base_changes_again_and_nothing_is_committed(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        for name in ("one", "two"):
            (view / name).write_text("the view's\n")
    (yolofs.project / "one").write_text("the host's\n")
    code = taking_away(yolofs.project / "one", "yolofs.cli.commit.committing_changes", "look_at_base", at_call=2)
    code = code.replace("os.unlink(", "(lambda path: open(path.replace('one', 'two'), 'w').close())(")
    done = run_code(code, ("commit", "--yes", "--theirs"), yolofs.project)
    assert done.returncode == CONFLICT, done
    assert "one: base's version is taken; what was staged there is a generation" in done.stderr
    assert "so nothing is committed" in done.stderr
    assert [change["path"] for change in yolofs("status", "--json").json["changes"]] == [str(yolofs.project / "two")]
