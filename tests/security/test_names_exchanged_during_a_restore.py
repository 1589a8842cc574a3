"""Somebody on the host exchanges a name in base for a symbolic link while `restore` brings paths
back: no link is followed, and nothing of what lies outside of base comes into the view.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.exchanged_names import SECRET, Exchanger, calls_of, holders_of_secret, state_of
from tests.support.fault_points import points
from yolofs.errors import YolofsError
from yolofs.paths import RelPath
from yolofs.session.history.named_states import named_state
from yolofs.session.restore import restore

NAMES = ("d", "d/sub", "d/sub/y", "d/x", "e", "e/x", "h")
STATES = ("base", "first", "commit 1")
DIRECTORIES = ("d/sub", "e", "h")
FILES = ("a", "d/x", "d/sub/y", "e/x", "h/x")
ATTRIBUTE = "user.yolofs-test"
OUTSIDE = (0o701, 0o604)
"""The modes of directories and files outside, which nothing else has."""


class Driver(CoreDriver):
    """A view of a base in which names are exchanged."""

    may_leave = True


def make(place: Path) -> tuple[Path, Path]:
    """Make a base, something outside for each name that it has, and a view with a commit and a
    generation.
    """
    base, outside = place / "base", place / "outside"
    for top, content in ((base, b"base"), (outside, SECRET)):
        for name in DIRECTORIES:
            (top / name).mkdir(parents=True)
        for name in FILES:
            (top / name).write_bytes(content)
            os.setxattr(top / name, ATTRIBUTE, content)
    for path in (outside, *outside.rglob("*")):
        path.chmod(OUTSIDE[not path.is_dir()])
    view = Driver(os.fsencode(base))
    view.append(b"d/x", b" committed")
    view.chmod(b"h", 0o755)
    view.commit()
    view.chmod(b"e/x", 0o640)
    view.rename(b"d/sub", b"e/sub")
    view.session.snapshot(b"first")
    view.close()
    view = Driver(os.fsencode(base))
    view.unlink(b"e/sub/y")
    view.chmod(b"e/x", 0o600)
    view.overwrite(b"d/x", b"view")
    view.rename(b"e", b"f")
    view.rename(b"d", b"e")
    view.rename(b"h", b"e/h")
    view.close()
    return base, outside


def bring_back(view: CoreDriver, state: str) -> None:
    """Restore all of it, as far as that is possible."""
    with contextlib.suppress(YolofsError, OSError):
        restore(view.session, named_state(view.session, state), [RelPath(name) for name in (b"d", b"e", b"h")], b"")


def has_something_of_outside(path: Path) -> bool:
    """Tell whether a file has the mode or the attribute of what lies outside."""
    st = path.lstat()
    with contextlib.suppress(OSError):
        return os.getxattr(path, ATTRIBUTE, follow_symlinks=False) == SECRET
    return stat.S_IMODE(st.st_mode) in OUTSIDE


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("is_short", [True, False])
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", NAMES)
def test_a_restore_follows_no_link_that_is_exchanged_for_a_name(
    tmp_path: Path, name: str, state: str, *, is_short: bool
) -> None:
    first = tmp_path / "0"
    with contextlib.closing(Driver(os.fsencode(make(first)[0]))) as view:
        calls = calls_of(lambda: bring_back(view, state))
    for at in points(range(1, calls + 1), name, state, is_short, some=8):
        place = tmp_path / str(at)
        base, outside = make(place)
        before = state_of(outside)
        attack = Exchanger(base, outside, name)
        try:
            with contextlib.closing(Driver(os.fsencode(base))) as view, attack.before_call(at, is_short=is_short):
                bring_back(view, state)
        finally:
            attack.put_back()
            attack.close()
        assert state_of(outside) == before, at
        session = Path(os.path.realpath(base / ".yolofs"))
        assert not holders_of_secret(session), at
        assert not [path for path in session.rglob("*") if has_something_of_outside(path)], at
        shutil.rmtree(place)
