"""Access control lists, which the kernel judges by with the transport of our own, compared with a
plain directory.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mount.hard_links import Mounter
from tests.mount.probes.tools import as_other, outcome
from tests.support.ext4_disk import ext4_disk
from tests.support.in_process import MountedView
from tests.support.required import do_without
from yolofs.fuse.direct.transport import DirectTransport
from yolofs.overlay.acl import DEFAULT_XATTR, XATTR
from yolofs.system.syscalls import _libc

pytestmark = [pytest.mark.mount, pytest.mark.root_only]

NAMED, MEMBER, CREW = 47110, 47112, 47111
ANYBODY = 0xFFFFFFFF
USER_OBJ, USER, GROUP_OBJ, GROUP, MASK, OTHER = 1, 2, 4, 8, 16, 32
PLAIN = [(USER_OBJ, 6, ANYBODY), (GROUP_OBJ, 4, ANYBODY), (OTHER, 0, ANYBODY)]
LISTED = [*PLAIN[:1], (USER, 6, NAMED), PLAIN[1], (GROUP, 2, CREW), (MASK, 6, ANYBODY), PLAIN[2]]
DEFAULT = [
    (USER_OBJ, 7, ANYBODY),
    (USER, 7, NAMED),
    (GROUP_OBJ, 5, ANYBODY),
    (GROUP, 6, CREW),
    (MASK, 7, ANYBODY),
    (OTHER, 1, ANYBODY),
]
NO_NAMES = [(USER_OBJ, 7, ANYBODY), (GROUP_OBJ, 5, ANYBODY), (OTHER, 5, ANYBODY)]


def packed(entries: list[tuple[int, int, int]]) -> bytes:
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def seen(path: Path) -> list[Any]:
    """Return what stat(2) and the lists of something tell."""
    st = path.lstat()
    lists = [outcome(os.getxattr, path, name, follow_symlinks=False) for name in (XATTR, DEFAULT_XATTR)]
    return [oct(st.st_mode), st.st_uid, st.st_gid, *lists]


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    with ext4_disk(tmp_path) as disk:
        path = disk / "base"
        path.mkdir()
        prepare(path)
        prepare(disk / "plain")
        yield path


def prepare(directory: Path) -> None:
    """Make what is in base: a directory with a default list, and files with lists."""
    directory.mkdir(exist_ok=True)
    directory.chmod(0o755)
    for name in ("defaults", "plain-defaults", "none", "closed"):
        (directory / name).mkdir()
    os.setxattr(directory / "defaults", DEFAULT_XATTR, packed(DEFAULT))
    os.setxattr(directory / "plain-defaults", DEFAULT_XATTR, packed(NO_NAMES))
    (directory / "closed").chmod(0o700)
    os.setxattr(directory / "closed", XATTR, packed([(USER_OBJ, 7, ANYBODY), (USER, 5, NAMED), (GROUP_OBJ, 0, ANYBODY),
                                                      (MASK, 5, ANYBODY), (OTHER, 0, ANYBODY)]))  # fmt: skip
    for name in ("file", "other", "closed/file"):
        (directory / name).write_bytes(b"content")
        (directory / name).chmod(0o640)
    os.setxattr(directory / "file", XATTR, packed(LISTED))


@pytest.fixture
def view(base: Path, mounted: Mounter) -> MountedView:
    view = mounted(make_transport=DirectTransport, allow_other=True, xattrs=True)
    os.chmod(view.mountpoint, 0o755)
    return view


Probe = Callable[[Path], Any]


def compared(view: MountedView, base: Path, probe: Probe) -> Any:
    """Do the same in the view and beside it, and return what was seen: the same."""
    plain = base.parent / "plain"
    theirs = probe(plain)
    ours = probe(Path(os.fsdecode(view.mountpoint)))
    assert ours == theirs
    return ours


def makes(directory: Path) -> list[Any]:
    """Make something of each type with several modes and umasks."""
    before = os.umask(0)
    try:
        for umask in (0o022, 0o077, 0):
            os.umask(umask)
            for mode in (0o777, 0o666, 0o640, 0o2770):
                at = directory / f"{umask:o}-{mode:o}"
                os.close(os.open(f"{at}-file", os.O_CREAT | os.O_WRONLY, mode))
                os.mkdir(f"{at}-directory", mode)
                os.mkfifo(f"{at}-fifo", mode & 0o777)
                if mode & 0o100:
                    os.mkdir(f"{at}-directory/below", mode)
                os.symlink("target", f"{at}-link")
                fd = os.open(directory, os.O_TMPFILE | os.O_RDWR, mode)
                assert not _libc.linkat(-100, b"/proc/self/fd/%d" % fd, -100, os.fsencode(f"{at}-unnamed"), 0x400)
                os.close(fd)
        return [(path.name, seen(path)) for path in sorted(directory.rglob("*"))]
    finally:
        os.umask(before)


@pytest.mark.parametrize("name", ["defaults", "plain-defaults", "none"])
def test_new_files_inherit_the_default_acl_of_their_directory_or_obey_the_umask(
    view: MountedView, base: Path, name: str
) -> None:
    found = compared(view, base, lambda at: makes(at / name))
    if name == "defaults":
        assert any(lists[3] != "ENODATA" for _, lists in found), "nothing has a list: nothing is tested here"
    view.remount()
    root = Path(os.fsdecode(view.mountpoint))
    assert [(path.name, seen(path)) for path in sorted((root / name).rglob("*"))] == found
    view.commit()
    assert [(path.name, seen(path)) for path in sorted((base / name).rglob("*"))] == found


def test_a_directory_of_the_view_passes_its_list_on_until_it_is_taken_away(view: MountedView, base: Path) -> None:
    def probe(at: Path) -> list[Any]:
        os.mkdir(at / "new")
        os.setxattr(at / "new", DEFAULT_XATTR, packed(DEFAULT))
        (at / "new/one").touch()
        os.mkdir(at / "new/d")
        os.removexattr(at / "new", DEFAULT_XATTR)
        (at / "new/two").touch()
        os.mkdir(at / "new/d2")
        return [seen(at / "new" / name) for name in ("one", "two", "d", "d2", "")]

    compared(view, base, probe)


def test_lists_and_modes_change_each_other(view: MountedView, base: Path) -> None:
    def probe(at: Path) -> list[Any]:
        results: list[Any] = [seen(at / "file")]
        for mode in (0o600, 0o660, 0o4777, 0o000, 0o640):
            os.chmod(at / "file", mode)
            results.append(seen(at / "file"))
        some: tuple[list[tuple[int, int, int]], ...] = (
            LISTED,
            PLAIN,
            LISTED,
            [],
            [(USER_OBJ, 6, ANYBODY)],
            [(USER, 6, NAMED), *PLAIN],
        )
        results += [(outcome(os.setxattr, at / "file", XATTR, packed(listed)), seen(at / "file")) for listed in some]
        results.append((outcome(os.setxattr, at / "file", XATTR, packed(LISTED)), sorted(os.listxattr(at / "file"))))
        results.extend((outcome(os.removexattr, at / "file", XATTR), seen(at / "file")) for _ in range(2))
        results.append(outcome(os.setxattr, at / "file", DEFAULT_XATTR, packed(DEFAULT)))
        results.append(outcome(os.removexattr, at / "defaults", DEFAULT_XATTR))
        results.append(outcome(os.removexattr, at / "defaults", DEFAULT_XATTR))
        results.append(outcome(os.setxattr, at / "none", XATTR, b"rubbish"))
        return results

    compared(view, base, probe)


def test_lists_stay_over_rename_write_link_and_snapshot(view: MountedView, base: Path) -> None:
    def probe(at: Path) -> list[Any]:
        with (at / "file").open("ab") as file:
            file.write(b"!")
        os.link(at / "file", at / "second")
        (at / "file").rename(at / "none/moved")
        return [seen(at / "second"), seen(at / "none/moved")]

    expected = compared(view, base, probe)
    view.snapshot(b"one")
    root = Path(os.fsdecode(view.mountpoint))
    with (root / "second").open("ab") as file:
        file.write(b"!")
    assert [seen(root / "second"), seen(root / "none/moved")] == expected
    view.travel(0)
    assert seen(root / "file") == seen(base / "file") == expected[0]


USERS = [(NAMED, NAMED), (MEMBER, CREW), (MEMBER, MEMBER), (MEMBER, 0)]


def attempts(at: Path) -> list[Any]:
    """Return what other users may do, by lists and modes."""

    def opens() -> list[Any]:
        return [
            outcome(lambda: os.close(os.open(at / name, flags)))  # noqa: B023 - called at once
            for name in ("file", "other", "closed/file", "defaults/made")
            for flags in (os.O_RDONLY, os.O_WRONLY)
        ] + [
            outcome(lambda: sorted(os.listdir(at / "closed"))),
            outcome(lambda: (at / "defaults" / "new").mkdir()),
            outcome(lambda: os.setxattr(at / "file", XATTR, packed(PLAIN))),
            [os.access(at / "file", how) for how in (os.R_OK, os.W_OK, os.X_OK)],
        ]

    return [as_other(opens, uid=uid, gid=gid) for uid, gid in USERS]


@pytest.mark.parametrize("is_staged", [False, True], ids=["base", "staged"])
def test_other_users_may_do_what_access_control_lists_allow(view: MountedView, base: Path, is_staged: bool) -> None:
    def probe(at: Path) -> Any:
        (at / "defaults/made").touch()
        if is_staged:
            for name in ("file", "other", "closed/file"):
                with (at / name).open("ab") as file:
                    file.write(b"!")
        found = attempts(at)
        os.setxattr(at / "other", XATTR, packed(LISTED))
        os.chmod(at / "file", 0o600)
        os.removexattr(at / "closed", XATTR)
        return [found, attempts(at)]

    first, second = compared(view, base, probe)
    assert first != second


def test_what_the_host_lists_shows_once_attributes_do(base: Path, mounted: Mounter) -> None:
    view = mounted(make_transport=DirectTransport, allow_other=True, xattrs=True, base_timeout_s=0.0)
    os.chmod(view.mountpoint, 0o755)
    root = Path(os.fsdecode(view.mountpoint))

    def may_read() -> Any:
        return as_other(lambda: outcome(lambda: os.close(os.open(root / "other", os.O_RDONLY))), uid=NAMED, gid=NAMED)

    assert may_read() == "EACCES"
    os.setxattr(base / "other", XATTR, packed(LISTED))
    assert may_read() != "EACCES"
    os.removexattr(base / "other", XATTR)
    assert may_read() == "EACCES"


def test_a_list_set_by_somebody_outside_the_group_takes_setgid_away(view: MountedView, base: Path) -> None:
    def probe(at: Path) -> list[Any]:
        os.chown(at / "other", NAMED, CREW)
        results = []
        for gid in (NAMED, CREW):
            os.chmod(at / "other", 0o2755)
            did = as_other(
                lambda: outcome(os.setxattr, at / "other", XATTR, packed(LISTED)),
                uid=NAMED,
                gid=gid,
            )
            results.append([did, seen(at / "other")])
        os.chmod(at / "other", 0o2755)
        os.setxattr(at / "other", XATTR, packed(LISTED))
        return [*results, seen(at / "other")]

    compared(view, base, probe)


def test_without_xattrs_lists_are_not_judged_by_and_the_kernel_applies_the_umask(base: Path, mounted: Mounter) -> None:
    view = mounted(make_transport=DirectTransport, allow_other=True)
    root = Path(os.fsdecode(view.mountpoint))
    os.close(os.open(root / "defaults/made", os.O_CREAT | os.O_WRONLY, 0o666))
    assert stat.S_IMODE((root / "defaults/made").stat().st_mode) == 0o644
    with pytest.raises(OSError, check=lambda error: error.errno == errno.EOPNOTSUPP):
        os.setxattr(root / "file", XATTR, packed(LISTED))


def test_setfacl_getfacl_and_cp_do_as_in_a_plain_directory(view: MountedView, base: Path) -> None:
    def probe(at: Path) -> str:
        code = f"""
set -e
setfacl -m u:{NAMED}:rw,g:{CREW}:r other
setfacl -d -m u:{NAMED}:rwx none
mkdir none/d; touch none/f; cp -p file none/copy; cp file none/plain
setfacl -x u:{NAMED} file
setfacl -b closed/file
chmod g-w none/f
getfacl -R -n --absolute-names .
"""
        done = subprocess.run(["sh", "-c", code], cwd=at, capture_output=True, text=True, check=False)
        return "\n".join(sorted(done.stdout.split("\n\n"))) + done.stderr

    if subprocess.run(["sh", "-c", "command -v setfacl"], capture_output=True, check=False).returncode:
        do_without("there is no setfacl: the package acl")
    assert f"user:{NAMED}:rw" in compared(view, base, probe)
