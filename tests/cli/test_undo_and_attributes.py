"""``yolofs undo`` where the host has given or changed extended attributes since the commit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.looks import looks
from tests.support.program import Program

_KINDS = ("new", "replaced", "of links", "given a mode", "directory", "made", "made/in it")
_BY_VIEW, _BY_HOST, _BEFORE = "user.by-view", "user.by-host", "user.before"


@pytest.fixture
def changed(yolofs: Program) -> Program:
    """A project after a commit that has changed a thing of each kind, and its attributes."""
    project = yolofs.project
    for name in ("replaced", "of links", "given a mode"):
        (project / name).write_text("old\n")
        os.setxattr(project / name, _BEFORE, b"1")
    os.link(project / "of links", project / "other name")
    (project / "directory").mkdir()
    yolofs.start_session()
    view = CoreDriver(os.fsencode(project))
    view.mkdir(b"made", 0o755)
    for new in (b"new", b"made/in it"):
        view.create(new, b"new\n", 0o644)
    for changed in (b"replaced", b"of links"):
        view.overwrite(changed, b"new\n")
    for changed in (b"given a mode", b"directory"):
        view.chmod(changed, 0o700)
    for name in _KINDS:
        view.setxattr(os.fsencode(name), os.fsencode(_BY_VIEW), b"1")
    view.close()
    yolofs("commit", "--yes")
    return yolofs


def _attributes(path: Path) -> dict[str, bytes]:
    return {name: os.getxattr(path, name) for name in os.listxattr(path) if name.startswith("user.")}


@pytest.mark.parametrize("attribute", [_BY_HOST, _BY_VIEW])
@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.some(4)
def test_an_attribute_that_the_host_has_given_or_changed_is_drift(changed: Program, kind: str, attribute: str) -> None:
    path = changed.project / kind
    os.setxattr(path, attribute, b"by the host")
    given = _attributes(path)
    assert str(path) in changed.refused("undo", "--yes", code=9)
    assert _attributes(path) == given
    changed("undo", "--yes", "--force")
    view = CoreDriver(os.fsencode(changed.project))  # what it took from base is staged
    assert given.items() <= dict(view.xattrs(os.fsencode(kind))).items()
    view.close()


def test_the_mode_of_a_directory_that_the_commit_has_made_is_drift_if_the_host_has_changed_it(changed: Program) -> None:
    """Unless its owner has only opened it, to get in."""
    made = changed.project / "made"
    made.chmod(0o711)
    assert str(made) in changed.refused("undo", "--yes", code=9)
    made.chmod(0o755)
    changed("undo", "--yes")
    assert not made.exists()


def test_attributes_that_the_commit_has_given_are_no_drift_though_backups_make_links(changed: Program) -> None:
    for name in _KINDS:
        path = changed.project / name
        if path.is_file():
            os.link(path, changed.project.parent / "backup")
            os.unlink(changed.project.parent / "backup")
        else:
            path.chmod(path.stat().st_mode)
    changed("undo", "--yes")
    assert _attributes(changed.project / "replaced") == {_BEFORE: b"1"}
    assert _attributes(changed.project / "of links") == {_BEFORE: b"1"}
    assert not _attributes(changed.project / "directory")
    before = looks(changed.project)
    changed("undo", "2", "--yes")
    assert _attributes(changed.project / "replaced") == {_BEFORE: b"1", _BY_VIEW: b"1"}
    changed("undo", "--yes")
    assert looks(changed.project) == before


def test_an_attribute_that_the_host_has_removed_is_no_drift(changed: Program) -> None:
    """Nothing of the host's is lost."""
    for name in _KINDS:
        os.removexattr(changed.project / name, _BY_VIEW)
    changed("undo", "--yes")
    assert not (changed.project / "new").exists()


def test_what_a_commit_has_moved_keeps_what_the_host_has_given_it(yolofs: Program) -> None:
    (yolofs.project / "moved").write_text("text\n")
    yolofs.start_session()
    view = CoreDriver(os.fsencode(yolofs.project))
    view.rename(b"moved", b"away")
    view.close()
    yolofs("commit", "--yes")
    os.setxattr(yolofs.project / "away", _BY_HOST, b"1")
    yolofs("undo", "--yes")
    assert _attributes(yolofs.project / "moved") == {_BY_HOST: b"1"}
