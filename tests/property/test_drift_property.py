"""The host changes base just after a change of the view: an unforced commit overwrites none of
that, and without such a change it finds no conflict.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import TypeAlias

import pytest
from hypothesis import event, given, note
from hypothesis import strategies as st

from tests.property.commands_drawn import Act, acts, paths
from tests.property.commands_world import Driver, World
from tests.property.test_commit_property import hard_links
from tests.support.commit_model import contents
from tests.support.host_edits import Edit
from tests.support.host_edits import edits_without_renaming as edits
from tests.support.model_steps import so_many
from yolofs.commit.select.selection import Selection
from yolofs.errors import ConflictError, HardLinksError
from yolofs.paths import RelPath
from yolofs.session.commit import commit

Then: TypeAlias = tuple[str, tuple[bytes, ...]]
"""What is to make no difference, and for a commit the paths that it takes."""

then = st.one_of(
    st.tuples(st.sampled_from(("nothing", "travel", "checkpoint")), st.just(())),
    st.tuples(st.just("commit"), st.lists(paths, min_size=1, max_size=3).map(tuple)),
)
works = st.lists(st.tuples(st.lists(acts, min_size=1, max_size=8), then), min_size=1, max_size=3)
"""What the view does, round by round."""


def check(work: list[tuple[list[Act], Then]], some: list[Edit], last: Then, links: list[tuple[bytes, ...]]) -> None:
    """Work in the view round by round, and on the host after the last one."""
    with tempfile.TemporaryDirectory() as top, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", os.path.join(top, "commands"))  # to look through those of this machine takes long
        patch.setenv("XDG_STATE_HOME", os.path.join(top, "state"))
        root = os.path.join(os.fsencode(os.path.realpath(top)), b"project")
        os.mkdir(root)
        world = World(root, links, None)
        for number, (done, between) in enumerate(work, 1):
            driver = Driver(root)
            try:
                act(driver, done)
                if number == len(work):
                    world.host.act(some)
                    between = last
                go_on(driver, between)
            finally:
                driver.close()
            if between[0] == "commit":
                commit_it(world, between[1])
        commit_it(world, ())
        note(f"in base: {sorted(contents(root))}")
        assert world.host.written <= contents(root)


def act(driver: Driver, some: list[Act]) -> None:
    for name, *arguments in some:
        with contextlib.suppress(OSError):
            if name == "rmtree":
                remove(driver, arguments[0])
            else:
                getattr(driver, name)(*arguments)
            note(f"{name} {arguments!r}")


def remove(driver: Driver, top: bytes) -> None:
    for path, what in sorted(driver.tree().items(), reverse=True):
        if path == top or path.startswith(top + b"/"):
            (driver.rmdir if what[0] == "dir" else driver.unlink)(path)


def go_on(driver: Driver, then: Then) -> None:
    if then[0] == "checkpoint":
        driver.session.write_checkpoint(least_records=1)
    elif then[0] == "travel":
        here = driver.snapshot()
        driver.travel(0)
        driver.travel(here)


def commit_it(world: World, paths: tuple[bytes, ...]) -> None:
    """Commit some paths, or all; where the host has done nothing, there is no conflict."""
    before = world.base()
    with world.session() as session:
        selection = Selection(session.regions, paths=tuple(map(RelPath, paths))) if paths else None
        try:
            commit(session, selection=selection)
        except ConflictError as error:
            note(f"refused: {error.message} {error.paths}")
            assert world.host.touched
            event("refused")
        except HardLinksError:
            event("refused for hard links")
        else:
            event("done")
            return
    assert world.base() == before


@so_many(ci=10, nightly=3000)
@given(works, edits | st.just([]), then, hard_links | st.just([]))
def test_nothing_that_the_host_has_changed_is_overwritten(
    work: list[tuple[list[Act], Then]], some: list[Edit], last: Then, links: list[tuple[bytes, ...]]
) -> None:
    check(work, some, last, links)
