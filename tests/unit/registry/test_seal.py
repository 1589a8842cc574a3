"""A seal fits its own place, user and content; else it says what differs."""

from __future__ import annotations

import errno
import multiprocessing
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from yolofs.errors import TrustError
from yolofs.registry.identity import DirectoryIdentity, identity_of
from yolofs.registry.seal import (
    KEY,
    MACHINE,
    Seal,
    SealedBase,
    Sealer,
    began_ns,
    digest_of_file,
    machine_id,
    read_plainly,
    seal,
    seal_key,
)
from yolofs.registry.state_directory import open_state

PLAN = b'{"root": "", "steps": []}'
BASE = SealedBase(b"/base", DirectoryIdentity(1, 2, 3))
ID = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    (tmp_path / "home").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    fd = open_state(make=True)
    yield fd
    os.close(fd)


@pytest.fixture
def sealer() -> Sealer:
    return Sealer(b"/session", b"k" * 32, b"m" * 32)


def sealed(sealer: Sealer, carried: str | None = None) -> bytes:
    return sealer.sealed(7, BASE, PLAN, carried, 1_800_000_000_000_000_000)


def test_a_seal_fits_what_was_sealed(sealer: Sealer) -> None:
    text = sealed(sealer, "abc")
    assert sealer.problems(text, 7, PLAN, "abc") == []
    assert sealer.base_problems(text, BASE) == []
    assert began_ns(text) == 1_800_000_000_000_000_000


def test_a_seal_with_any_byte_changed_does_not_fit(sealer: Sealer) -> None:
    text = sealed(sealer)
    for at in range(len(text) - 1):  # but for the newline at its end
        changed = bytearray(text)
        changed[at] ^= 1
        assert sealer.problems(bytes(changed), 7, PLAN, None), text[: at + 1]


def test_each_field_is_sealed(sealer: Sealer) -> None:
    right = msgspec.json.decode(sealed(sealer), type=Seal)
    for name in set(Seal.__struct_fields__) - {"seal"}:
        value = getattr(right, name)
        other = value + 1 if isinstance(value, int) else f"{value}x"
        changed = msgspec.json.encode(msgspec.structs.replace(right, **{name: other}))
        assert sealer.problems(changed, 7, PLAN, None), name


@pytest.mark.parametrize(
    ("other", "number", "plan", "carried", "said"),
    [
        (Sealer(b"/another", b"k" * 32, b"m" * 32), 7, PLAN, None, "it belongs to another session"),
        (Sealer(b"/session", b"k" * 32, b"n" * 32), 7, PLAN, None, "it began on another machine"),
        (Sealer(b"/session", b"l" * 32, b"m" * 32), 7, PLAN, None, "its seal was made with another key than yours"),
        (Sealer(b"/session", b"k" * 32, b"m" * 32), 8, PLAN, None, "it was commit 7"),
        (Sealer(b"/session", b"k" * 32, b"m" * 32), 7, PLAN + b" ", None, "its plan was changed"),
        (Sealer(b"/session", b"k" * 32, b"m" * 32), 7, PLAN, "", "the journal that is to follow it (carried)"),
    ],
)
def test_a_seal_that_does_not_fit_says_what_differs(
    sealer: Sealer, other: Sealer, number: int, plan: bytes, carried: str | None, said: str
) -> None:
    (problem,) = other.problems(sealed(sealer), number, plan, carried)
    assert problem.startswith(said)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_another_user_with_the_same_key_is_named(sealer: Sealer) -> None:
    text = sealed(sealer)
    os.seteuid(47110)
    try:
        assert sealer.problems(text, 7, PLAN, None) == ["it began as another user"]
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("text", [b"", b"{}", b"null", b'{"version": 1}', b"\xff", b"[" * 100_000])
def test_a_malformed_seal_cannot_be_read(sealer: Sealer, text: bytes) -> None:
    assert sealer.problems(text, 7, PLAN, None) == ["its seal cannot be read"]
    assert began_ns(text) is None


def test_base_is_known_by_path_inode_and_birth_and_not_by_its_device(sealer: Sealer) -> None:
    """Device numbers change over reboots, and with each mount of some filesystems."""
    text = sealed(sealer)
    assert sealer.base_problems(text, SealedBase(b"/base", DirectoryIdentity(99, 2, 3))) == []
    for base in (
        SealedBase(b"/base", DirectoryIdentity(1, 9, 3)),
        SealedBase(b"/base", DirectoryIdentity(1, 2, 9)),
        SealedBase(b"/base", DirectoryIdentity(1, 2, None)),
    ):
        assert sealer.base_problems(text, base) == ["another directory is in the place of its base"]
    assert sealer.base_problems(text, SealedBase(b"/other", DirectoryIdentity(1, 2, 3))) == [
        "its base was at another path"
    ]


def test_where_no_birth_is_known_the_device_counts_within_a_boot(
    sealer: Sealer, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = sealer.sealed(7, SealedBase(b"/base", DirectoryIdentity(1, 2, None)), PLAN, None, 1)
    other = SealedBase(b"/base", DirectoryIdentity(99, 2, None))
    assert sealer.base_problems(text, SealedBase(b"/base", DirectoryIdentity(1, 2, None))) == []
    assert sealer.base_problems(text, other) == ["another directory is in the place of its base"]
    monkeypatch.setattr("yolofs.registry.seal._BOOT_FILE", b"/dev/null")
    assert Sealer(b"/session", b"k" * 32, b"m" * 32).base_problems(text, other) == []


def test_the_seal_of_an_end_fits_only_the_commit_it_was_made_for(sealer: Sealer) -> None:
    text = sealed(sealer)
    assert sealer.is_end(sealer.end(text, 12), text)
    assert not sealer.is_end(sealer.end(text, 12), sealed(sealer, "other"))
    assert not sealer.is_end(b"12\n", text)
    assert not sealer.is_end(b"", text)
    assert not sealer.is_end(b"\xff" * 99, text)
    assert not Sealer(b"/session", b"l" * 32, b"m" * 32).is_end(sealer.end(text, 12), text)
    assert sealer.is_given_up(sealer.given_up(7), 7)
    assert not sealer.is_given_up(sealer.given_up(7), 8)
    assert not Sealer(b"/another", b"k" * 32, b"m" * 32).is_given_up(sealer.given_up(7), 7)


def test_fields_cannot_be_shifted_into_each_other() -> None:
    assert seal(b"k", [b"ab", b"c"]) != seal(b"k", [b"a", b"bc"])
    assert seal(b"k", [b"abc"]) != seal(b"k", [b"abc", b""])


# ---- the key and the machine


def test_the_key_is_made_once_and_is_the_users_alone(state: int) -> None:
    with pytest.raises(FileNotFoundError):
        seal_key(state)
    key = seal_key(state, make=True)
    assert len(key) == 32
    assert seal_key(state, make=True) == seal_key(state) == key
    assert os.stat(KEY, dir_fd=state).st_mode & 0o7777 == 0o600
    assert os.stat(KEY, dir_fd=state).st_nlink == 1
    assert set(os.listdir(state)) == {".yolofs-state", "seal.key"}


def _key(_: int) -> bytes:
    fd = open_state(make=True)
    try:
        return seal_key(fd, make=True)
    finally:
        os.close(fd)


def test_those_who_need_a_key_at_the_same_time_have_the_same(state: int) -> None:
    with multiprocessing.get_context("fork").Pool(8) as pool:
        keys = pool.map(_key, range(64))
    assert len(set(keys)) == 1


@pytest.mark.parametrize("what", ["link", "open", "short", "directory"])
def test_a_key_that_is_not_the_users_alone_is_refused(state: int, what: str, tmp_path: Path) -> None:
    path = Path(f"/proc/self/fd/{state}/seal.key")
    if what == "link":
        (tmp_path / "key").write_bytes(b"k" * 32)
        path.symlink_to(tmp_path / "key")
    elif what == "directory":
        path.mkdir()
    else:
        path.write_bytes(b"k" * (31 if what == "short" else 32))
        path.chmod(0o666 if what == "open" else 0o600)
    with pytest.raises((TrustError, IsADirectoryError)):
        seal_key(state, make=True)


@pytest.mark.parametrize("found", ["", "uninitialized\n", "0" * 32, ID[:-1], ID.upper(), None])
def test_a_machine_without_an_id_gets_one_that_stays(state: int, tmp_path: Path, found: str | None) -> None:
    """As in many containers."""
    if found is not None:
        (tmp_path / "machine-id").write_text(found)
    files = [os.fsencode(tmp_path / "machine-id"), os.fsencode(tmp_path / "missing")]
    made = machine_id(state, files)
    assert machine_id(state, files) == made != ID.encode()
    assert len(made) == 32
    assert os.stat(MACHINE, dir_fd=state).st_mode & 0o7777 == 0o600
    (tmp_path / "missing").write_text(f"{ID}\n")
    assert machine_id(state, files) == ID.encode()


# ---- what anybody may have put there


def test_a_link_fifo_or_directory_is_not_read_as_a_sealed_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "directory").mkdir()
    assert read_plainly(os.fsencode(tmp_path / "file")) == b"x"
    for name in ("link", "fifo", "directory", "missing"):
        assert read_plainly(os.fsencode(tmp_path / name)) is None
    assert digest_of_file(os.fsencode(tmp_path / "missing")) is None
    for name in ("link", "fifo", "directory"):
        assert digest_of_file(os.fsencode(tmp_path / name)) == ""


def test_a_directory_is_known_by_more_than_its_number(tmp_path: Path) -> None:
    one = tmp_path / "one"
    one.mkdir()
    fd = os.open(one, os.O_PATH)
    try:
        assert identity_of(fd) == identity_of(os.fsencode(one))
    finally:
        os.close(fd)
    assert identity_of(os.fsencode(one)).inode == one.stat().st_ino
    before = identity_of(os.fsencode(one))
    os.rename(one, tmp_path / "two")
    assert identity_of(os.fsencode(tmp_path / "two")) == before
    link = tmp_path / "link"
    link.symlink_to("two")
    assert identity_of(os.fsencode(link)).inode == link.lstat().st_ino
    with pytest.raises(FileNotFoundError):
        identity_of(os.fsencode(one))


def test_an_error_names_the_whole_path_of_the_key(state: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OSError, match="Input/output error") as caught:
        seal_key(state, make=True)
    name = os.fsencode(caught.value.filename)
    assert name.startswith(os.fsencode(tmp_path / "home"))
    assert KEY in name
