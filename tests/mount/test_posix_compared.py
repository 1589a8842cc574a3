"""Every probe does in the view what it does in a plain directory, and leaves the same behind.

These have to be equal: all that the probe saw, the tree after it, the tree after a remount, and
base after a commit; until then base stays as it was, to the last ctime.
"""

from __future__ import annotations

import inspect
import itertools
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.mount.manifest import manifest, untouched
from tests.mount.probes import attributes, files, naming, sharing
from tests.mount.probes.tools import prepare
from tests.support import forked
from tests.support.fault_points import points
from tests.support.in_process import MountedView

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]

ANYBODY = (
    files.open_flags,
    files.nofollow_reads_and_writes_the_file_itself,
    files.names_that_are_long,
    files.paths_that_are_long,
    files.append_by_several_processes,
    files.append_ignores_the_position,
    files.direct_io,
    files.synchronous_io,
    files.beyond_4_gib,
    files.beyond_what_the_disk_can_hold,
    files.positions_and_vectors,
    files.allocate,
    files.copying_in_the_kernel,
    files.holes,
    sharing.mappings,
    sharing.mapping_that_outlives_its_file,
    sharing.mapping_shared_by_processes,
    sharing.mapping_rules,
    sharing.running_programs,
    sharing.locks_of_whole_files,
    sharing.locks_of_ranges,
    sharing.watching,
    naming.names_of_open_files,
    naming.parents_after_a_rename,
    naming.what_one_does_others_see,
    naming.links,
    naming.links_that_were_there,
    naming.symbolic_links,
    naming.directories_and_their_errors,
    naming.special_files,
    attributes.times,
    attributes.access_and_umask,
    attributes.figures_of_the_disk,
)
ROOT_ONLY = (
    naming.devices,
    attributes.access_by_others,
    attributes.sticky_directories,
    attributes.setgid_directories,
    attributes.setuid_and_setgid,
)


@pytest.fixture
def plain() -> Iterator[Path]:
    """A plain directory whose path is as long as a mountpoint's."""
    with tempfile.TemporaryDirectory(prefix="yolofs-dir-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)


def run(probe: Callable[[], Any], directory: str) -> Any:
    """Run a probe in a directory; return what it saw."""
    script, words = inspect.getfile(probe), [probe.__name__]
    done = forked.server().run(words, cwd=directory, env=os.environ, timeout_s=60, script=script)
    assert done is not None, "what has been set for this process alone?"
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def compare(probe: Callable[[], Any], view: MountedView, base: Path, plain: Path) -> None:
    """Run a probe on both sides and compare all there is to compare."""
    before = untouched(base)
    root = os.fsdecode(view.mountpoint)
    expected = run(probe, str(plain))
    assert run(probe, root) == expected
    tree = manifest(plain)
    assert manifest(root) == tree
    view.remount()
    assert manifest(root) == tree, "after a remount"
    assert untouched(base) == before
    view.commit()
    assert manifest(base) == tree, "in base after a commit"


@pytest.mark.parametrize(
    ("probe", "origin"), points(list(itertools.product(ANYBODY, ["base", "snapshotted"])), "anybody", some=6)
)
def test_system_calls_of_any_user_do_the_same_as_in_a_plain_directory(
    base: Path, plain: Path, mounted: Mounter, probe: Callable[[], Any], origin: str
) -> None:
    prepare(plain)
    if origin == "base":
        prepare(base)
    view = mounted()
    if origin == "snapshotted":
        prepare(Path(os.fsdecode(view.mountpoint)))
        view.snapshot()
    compare(probe, view, base, plain)


@pytest.mark.parametrize("origin", points(["base", "snapshotted"], "renames", some=1))
def test_renames_are_as_in_a_plain_directory(base: Path, plain: Path, mounted: Mounter, origin: str) -> None:
    naming.prepare_renames(plain)
    if origin == "base":
        naming.prepare_renames(base)
    view = mounted()
    if origin != "base":
        naming.prepare_renames(Path(os.fsdecode(view.mountpoint)))
    if origin == "snapshotted":
        view.snapshot()
    compare(naming.renames, view, base, plain)


@pytest.mark.parametrize("probe", ROOT_ONLY)
@pytest.mark.parametrize("origin", ["base", "staged"])
@pytest.mark.some(3)
def test_system_calls_of_root_and_other_users_do_the_same_as_in_a_plain_directory(
    base: Path, plain: Path, mounted: Mounter, probe: Callable[[], Any], origin: str
) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can become other users and make devices")
    prepare(plain)
    if origin == "base":
        prepare(base)
    for directory in (base, plain):
        directory.chmod(0o755)
    view = mounted(allow_other=True)
    if origin == "staged":
        prepare(Path(os.fsdecode(view.mountpoint)))
    compare(probe, view, base, plain)


@pytest.mark.parametrize("origin", ["base", "staged"])
def test_extended_attributes_are_as_in_a_plain_directory(
    base: Path, plain: Path, mounted: Mounter, origin: str
) -> None:
    prepare(plain)
    if origin == "base":
        prepare(base)
        for directory in (base, plain):
            os.setxattr(directory / "f", "user.before", b"was there")
    view = mounted(xattrs=True)
    if origin == "staged":
        prepare(Path(os.fsdecode(view.mountpoint)))
    compare(attributes.extended_attributes, view, base, plain)


def test_every_probe_is_compared() -> None:
    modules = (attributes, files, naming, sharing)
    found = {name for one in modules for name, value in vars(one).items() if is_probe(value, one)}
    here = (*ANYBODY, *ROOT_ONLY, naming.renames, attributes.extended_attributes)
    assert found == {probe.__name__ for probe in here}


def is_probe(value: object, module: ModuleType) -> bool:
    is_own = getattr(value, "__module__", "") == module.__name__
    return is_own and value is not naming.prepare_renames
