"""Attributes that the host gives to a commit's files while the commit is interrupted are kept when
that is taken back.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.planting import interrupt
from tests.support.program import Program
from yolofs.commit import plan_commit
from yolofs.session.session import Session, SessionAccess

_KINDS = ("new", "replaced", "of links", "given a mode", "renamed", "made", "linked")
_ATTRIBUTE = "user.by-host"


@pytest.fixture
def interrupted(tmp_path: Path) -> Program:
    """A project in which a commit was killed before its last step, the time of a directory."""
    project = tmp_path / "project"
    project.mkdir()
    yolofs = Program(project)
    for name in ("replaced", "of links", "given a mode", "old name", "gets a link"):
        (project / name).write_text("old\n")
    os.link(project / "of links", project / "other name")
    yolofs.start_session()
    view = CoreDriver(os.fsencode(project))
    view.mkdir(b"made", 0o755)
    view.create(b"new", b"new\n", 0o644)
    for changed in (b"replaced", b"of links"):
        view.overwrite(changed, b"new\n")
    view.chmod(b"given a mode", 0o700)
    view.rename(b"old name", b"renamed")
    view.append(b"gets a link", b"more\n")
    view.link(b"gets a link", b"linked")
    view.close()
    with Session.open(os.fsencode(project), SessionAccess.READ) as session:
        steps = len(plan_commit(session.state(), session.base, session.store).steps)
    interrupt(project, steps - 1, "commit", "--yes")
    return yolofs


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.some(4)
def test_an_attribute_that_the_host_has_given_is_not_lost_when_a_commit_is_taken_back(
    interrupted: Program, kind: str
) -> None:
    path = interrupted.project / kind
    os.setxattr(path, _ATTRIBUTE, b"1")
    interrupted("commit", "--roll-back")
    assert _holders(interrupted)


def _holders(yolofs: Program) -> list[str]:
    """Return all of base and of the session that has the host's attribute."""
    paths = (path for top in (yolofs.project, yolofs.session) for path in top.rglob("*") if not path.is_symlink())
    return [str(path) for path in paths if _ATTRIBUTE in os.listxattr(path)]
