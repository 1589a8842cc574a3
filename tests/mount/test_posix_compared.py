"""Every probe does in the view what it does in a plain directory, and leaves the same behind.

What has to be equal: all that the probe saw, the tree after it, the tree after a remount, and base after a commit;
until then base is, to the last ctime, what it was.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mount import probes
from tests.mount.in_process import MountedView
from tests.mount.manifest import manifest, untouched

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]

ANYBODY = (
    probes.open_flags,
    probes.nofollow_reads_and_writes_the_file_itself,
    probes.names_that_are_long,
    probes.paths_that_are_long,
    probes.append_by_several_processes,
    probes.append_ignores_the_position,
    probes.direct_io,
    probes.synchronous_io,
    probes.beyond_4_gib,
    probes.beyond_what_the_disk_can_hold,
    probes.positions_and_vectors,
    probes.allocate,
    probes.copying_in_the_kernel,
    probes.holes,
    probes.mappings,
    probes.mapping_that_outlives_its_file,
    probes.mapping_shared_by_processes,
    probes.mapping_rules,
    probes.running_programs,
    probes.locks_of_whole_files,
    probes.locks_of_ranges,
    probes.watching,
    probes.names_of_open_files,
    probes.parents_after_a_rename,
    probes.what_one_does_others_see,
    probes.links,
    probes.links_that_were_there,
    probes.symbolic_links,
    probes.directories_and_their_errors,
    probes.special_files,
    probes.times,
    probes.access_and_umask,
    probes.figures_of_the_disk,
)
ROOT_ONLY = (
    probes.devices,
    probes.access_by_others,
    probes.sticky_directories,
    probes.setgid_directories,
    probes.setuid_and_setgid,
)


@pytest.fixture
def plain() -> Iterator[Path]:
    """A plain directory whose path is as long as a mountpoint's."""
    with tempfile.TemporaryDirectory(prefix="yolofs-dir-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)


def run(probe: Callable[[], Any], directory: str) -> Any:
    """Run a probe in a directory; return what it saw."""
    command = [sys.executable, "-P", probes.__file__, probe.__name__]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
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


@pytest.mark.parametrize("probe", ANYBODY)
@pytest.mark.parametrize("origin", ["base", "snapshotted"])
def test_by_anybody(base: Path, plain: Path, mounted: Mounter, probe: Callable[[], Any], origin: str) -> None:
    probes.prepare(plain)
    if origin == "base":
        probes.prepare(base)
    view = mounted()
    if origin == "snapshotted":
        probes.prepare(Path(os.fsdecode(view.mountpoint)))
        view.snapshot()
    compare(probe, view, base, plain)


@pytest.mark.parametrize("origin", ["base", "snapshotted"])
def test_renames(base: Path, plain: Path, mounted: Mounter, origin: str) -> None:
    probes.prepare_renames(plain)
    if origin == "base":
        probes.prepare_renames(base)
    view = mounted()
    if origin != "base":
        probes.prepare_renames(Path(os.fsdecode(view.mountpoint)))
    if origin == "snapshotted":
        view.snapshot()
    compare(probes.renames, view, base, plain)


@pytest.mark.parametrize("probe", ROOT_ONLY)
@pytest.mark.parametrize("origin", ["base", "staged"])
def test_by_root_and_others(base: Path, plain: Path, mounted: Mounter, probe: Callable[[], Any], origin: str) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can become other users and make devices")
    probes.prepare(plain)
    if origin == "base":
        probes.prepare(base)
    for directory in (base, plain):
        directory.chmod(0o755)
    view = mounted(allow_other=True)
    if origin == "staged":
        probes.prepare(Path(os.fsdecode(view.mountpoint)))
    compare(probe, view, base, plain)


@pytest.mark.parametrize("origin", ["base", "staged"])
def test_extended_attributes(base: Path, plain: Path, mounted: Mounter, origin: str) -> None:
    probes.prepare(plain)
    if origin == "base":
        probes.prepare(base)
        for directory in (base, plain):
            os.setxattr(directory / "f", "user.before", b"was there")
    view = mounted(xattrs=True)
    if origin == "staged":
        probes.prepare(Path(os.fsdecode(view.mountpoint)))
    compare(probes.extended_attributes, view, base, plain)


def test_every_probe_is_compared() -> None:
    ours = {name for name, value in vars(probes).items() if getattr(value, "__module__", "") == probes.__name__}
    tools = {"prepare", "prepare_renames", "outcome", "called", "facts", "content", "opened", "Child", "as_other"}
    here = (*ANYBODY, *ROOT_ONLY, probes.renames, probes.extended_attributes)
    assert ours - tools == {probe.__name__ for probe in here}
