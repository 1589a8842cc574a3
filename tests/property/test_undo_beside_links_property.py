"""Files with hard links are changed by a commit, and then in the view: an undo leaves base as it
was, the view stays, and a commit of what is staged again makes base what the view shows.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import event, example, given
from hypothesis import strategies as st

from tests.support.core_driver import CoreDriver
from tests.support.looks import looks, tree_of
from tests.support.model_steps import so_many
from tests.support.session_cleaning import remove_sessions_below
from yolofs.session.commit import commit
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, undo

Act = tuple[str, bytes, bytes]
"""What is done, at a name, and another name that it may take."""

NAMES = (b"one", b"pair", b"pair2", b"d/t1", b"d/t2", b"t3", b"d/solo")
HOW = ("link", "remove", "move", "append", "chmod", "replace", "move over", "link over", "move d")

acts = st.lists(st.tuples(st.sampled_from(HOW), st.sampled_from(NAMES), st.sampled_from(NAMES)), min_size=1, max_size=3)


@so_many(ci=20, nightly=2000)
@given(acts, acts)
@example([("link over", b"one", b"pair")], [("move", b"pair2", b"pair2")])
@example([("link over", b"one", b"t3"), ("remove", b"d/t2", b"one")], [("append", b"d/solo", b"one")])
@example([("link over", b"one", b"d/solo")], [("move d", b"one", b"one")])
@example([("link", b"one", b"one")], [("append", b"pair", b"one")])
def test_an_undo_beside_hard_links_leaves_base_and_the_view_as_they_were(first: list[Act], second: list[Act]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        project = Path(directory, "project")
        try:
            check(project, first, second)
        finally:
            remove_sessions_below(os.fsencode(directory))


def check(project: Path, first: list[Act], second: list[Act]) -> None:
    make_base(project)
    CoreDriver(os.fsencode(project)).close()
    before = looks(project)
    act(project, first)
    with opened(project) as session:
        if commit(session).number is None:
            event("nothing is committed")
            return
    act(project, second)
    view = shown(project)
    with opened(project) as session:
        assert undo(session, choose_commit(session, 1)).is_whole
    assert looks(project) == before
    assert shown(project) == view
    with opened(project) as session:
        number = commit(session).number
    assert without_counts(tree_of(project)) == without_counts(view)
    assert shown(project) == view
    if number is not None:
        with opened(project) as session:
            assert undo(session, choose_commit(session, number)).is_whole
    assert looks(project) == before
    assert shown(project) == view


def make_base(project: Path) -> None:
    for name in ("d", "e"):
        (project / name).mkdir(parents=True)
    for name in ("one", "pair", "d/t1", "d/solo"):
        (project / name).write_text(f"{name}\n")
    (project / "pair2").hardlink_to(project / "pair")
    for name in ("d/t2", "t3"):
        (project / name).hardlink_to(project / "d" / "t1")


def act(project: Path, some: list[Act]) -> None:
    view = CoreDriver(os.fsencode(project))
    try:
        for how, name, other in some:
            with contextlib.suppress(OSError):  # what is not there any more is not done
                _act(view, how, name, other)
    finally:
        view.close()


def _act(view: CoreDriver, how: str, name: bytes, other: bytes) -> None:
    new = b"e/" + name.replace(b"/", b"")
    match how:
        case "link":
            view.link(name, new)
        case "remove":
            view.unlink(name)
        case "move":
            view.rename(name, new)
        case "append":
            view.append(name, b"more\n")
        case "chmod":
            view.chmod(name, 0o600)
        case "replace":
            view.unlink(name)
            view.create(name, b"another\n", 0o644)
        case "move over":
            view.rename(name, other)
        case "link over" if name != other:
            view.unlink(name)
            view.link(other, name)
        case "move d":
            view.rename(b"d", b"d2")


def opened(project: Path) -> Session:
    return Session.open(os.fsencode(project), SessionAccess.WRITE, root=os.fsencode(project))


def shown(project: Path) -> dict[bytes, tuple[Any, ...]]:
    view = CoreDriver(os.fsencode(project))
    try:
        return view.tree()
    finally:
        view.close()


def without_counts(tree: dict[bytes, tuple[Any, ...]]) -> dict[bytes, tuple[Any, ...]]:
    """Return a tree without its root and the session in it, and without the number of names and the
    first of them.
    """
    return {path: what[:-2] for path, what in tree.items() if path and b".yolofs" not in path}
