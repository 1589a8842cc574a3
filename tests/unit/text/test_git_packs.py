"""Packs that git made are read as git reads them; damaged ones never yield what git would not."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.support.repositories import git
from yolofs.text.git_packs import DamagedPackError, Pack, PackedObject, PackIndex, ReadingBudget, patched

MOST = 1 << 22
MOST_WORK = 1 << 30


@pytest.fixture(params=["sha1", "sha256"])
def repository(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A repository in one pack, with deltas of both kinds of object and an object of 100 kB."""
    git(tmp_path, "init", "-q", f"--object-format={request.param}")
    git(tmp_path, "config", "user.email", "a@b")
    git(tmp_path, "config", "user.name", "a")
    text = [f"{random.Random(number).random()}\n" for number in range(6_000)]
    for number in range(6):
        text[number * 100] = f"changed {number}\n"
        (tmp_path / "file").write_text("".join(text))
        git(tmp_path, "add", "file")
        git(tmp_path, "commit", "-q", "-m", "the same long message " * 40 + str(number))
    git(tmp_path, "tag", "-a", "-m", "one", "one")
    git(tmp_path, "gc", "-q")
    return tmp_path


def answered(repository: Path, *words: str, given: str | None = None) -> str:
    done = subprocess.run(
        ["git", *words], cwd=repository, input=given, capture_output=True, check=True, text=True, encoding="latin-1"
    )
    return done.stdout


def opened(stack: ExitStack, repository: Path, suffix: str) -> int:
    (path,) = (repository / ".git/objects/pack").glob(f"*.{suffix}")
    fd = os.open(path, os.O_RDONLY)
    stack.callback(os.close, fd)
    return fd


@pytest.fixture
def names(repository: Path) -> list[str]:
    return answered(repository, "rev-list", "--all", "--objects", "--no-object-names").split()


@pytest.fixture
def pack(repository: Path, names: list[str]) -> Iterator[Pack]:
    with ExitStack() as stack:
        width = len(names[0]) // 2
        yield Pack(
            PackIndex(opened(stack, repository, "idx"), width),
            opened(stack, repository, "pack"),
            width,
            ReadingBudget(MOST_WORK),
        )


def test_each_object_is_what_git_says_it_is(repository: Path, names: list[str], pack: Pack) -> None:
    assert "\nchain length = " in answered(repository, "verify-pack", "-v", *map(str, repository.rglob("*.pack")))
    kinds = set()
    for name in names:
        kind = answered(repository, "cat-file", "-t", name).strip()
        content = answered(repository, "cat-file", kind, name).encode("latin-1")
        assert pack.find(bytes.fromhex(name), MOST) == PackedObject(kind.encode(), content)
        kinds.add(kind)
    assert kinds == {"commit", "tree", "blob", "tag"}


def test_an_object_that_a_pack_lacks_is_not_found(names: list[str], pack: Pack) -> None:
    for byte in (0, 1, 127, 255):
        assert pack.find(bytes([byte]) * (len(names[0]) // 2), MOST) is None


def test_an_object_that_is_too_large_is_refused(repository: Path, pack: Pack) -> None:
    blob = answered(repository, "rev-parse", "HEAD:file").strip()
    with pytest.raises(DamagedPackError):
        pack.find(bytes.fromhex(blob), 1_000)


def test_whatever_is_damaged_nothing_but_that_is_said(repository: Path, names: list[str]) -> None:
    """Any byte changed, anything cut off: an answer or this error, at once."""
    draw = random.Random(1)
    for _ in range(150):
        suffix = draw.choice(["idx", "pack"])
        (path,) = (repository / ".git/objects/pack").glob(f"*.{suffix}")
        whole = path.read_bytes()
        at = draw.randrange(len(whole))
        path.chmod(0o600)
        path.write_bytes(whole[:at] if draw.random() < 0.2 else whole[:at] + draw.randbytes(3) + whole[at + 3 :])
        with ExitStack() as stack:
            width = len(names[0]) // 2
            try:
                index = PackIndex(opened(stack, repository, "idx"), width)
            except DamagedPackError:
                path.write_bytes(whole)
                continue
            with suppress(DamagedPackError):
                damaged = Pack(index, opened(stack, repository, "pack"), width, ReadingBudget(MOST_WORK))
                for name in names:
                    with suppress(DamagedPackError):
                        damaged.find(bytes.fromhex(name), MOST)
        path.write_bytes(whole)


@pytest.mark.parametrize(
    "delta",
    [
        b"",
        b"\x05",
        b"\x05\x03",
        b"\x04\x03\x03abc",  # of another base
        b"\x05\x03\x00",  # an instruction that git keeps for later
        b"\x05\x03\x04abc",
        b"\x05\x03\x91\x04\x03",  # beyond the end of the base
        b"\x05\x02\x03abc",
        b"\x05\xff\xff\xff\xff\x7f",
    ],
)
def test_a_delta_that_does_not_fit_is_refused(delta: bytes) -> None:
    with pytest.raises(DamagedPackError):
        patched(b"12345", delta, MOST, ReadingBudget(MOST_WORK))


def test_a_delta_copies_and_inserts() -> None:
    assert patched(b"12345", b"\x05\x05\x91\x01\x03\x02ab", MOST, ReadingBudget(MOST_WORK)) == b"234ab"


# ---- packs that were made to be read by us


NAME = b"\xaa" * 20


HEAD = b"PACK\0\0\0\x02\0\0\0\x01"
SUM = b"\x55" * 20


def files(tmp_path: Path, stack: ExitStack, index: bytes, pack: bytes) -> tuple[int, int]:
    fds = []
    for name, content in (("idx", index), ("pack", pack)):
        (tmp_path / name).write_bytes(content)
        fds.append(os.open(tmp_path / name, os.O_RDONLY))
        stack.callback(os.close, fds[-1])
    return fds[0], fds[1]


def index_of(at: int, far: bytes = b"") -> bytes:
    """Return an index of one object, which begins at ``at``."""
    fanout = b"".join(struct.pack(">I", first >= NAME[0]) for first in range(256))
    return b"\xfftOc\0\0\0\x02" + fanout + NAME + bytes(4) + struct.pack(">I", at) + far + SUM + bytes(20)


def packed(
    tmp_path: Path, stack: ExitStack, body: bytes, at: int = len(HEAD), *, far: bytes = b"", work: int = MOST_WORK
) -> Pack:
    """Return a pack of one object, which begins at ``at`` as its index says."""
    index, pack = files(tmp_path, stack, index_of(at, far), HEAD + body + SUM)
    return Pack(PackIndex(index, 20), pack, 20, ReadingBudget(work))


def test_a_pack_that_git_would_not_use_is_not_read(tmp_path: Path) -> None:
    """Else an agent could put what it deletes into one, and nobody would be told."""
    index, body = index_of(len(HEAD)), b"\x33" + zlib.compress(b"abc")
    damaged = [
        (index, HEAD[:7] + b"\x04" + HEAD[8:] + body + SUM),
        (index, b"JUNK" + HEAD[4:] + body + SUM),
        (index, HEAD[:-1] + b"\x02" + body + SUM),
        (index, HEAD + body + bytes(20)),
        (index, HEAD + body),
        (index, HEAD),
        (index, b""),
        (index[:-1], HEAD + body + SUM),
        (index[:-40], HEAD + body + SUM),
    ]
    with ExitStack() as stack:
        assert packed(tmp_path, stack, body).find(NAME, MOST) == PackedObject(b"blob", b"abc")
        for one in damaged:
            found, pack = files(tmp_path, stack, *one)
            index_found = PackIndex(found, 20)
            with pytest.raises(DamagedPackError):
                Pack(index_found, pack, 20, ReadingBudget(MOST_WORK))


@pytest.mark.parametrize("offset", [1 << 31, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_an_offset_that_no_file_reaches_is_damage(tmp_path: Path, offset: int) -> None:
    with ExitStack() as stack:
        pack = packed(tmp_path, stack, b"", 1 << 31, far=struct.pack(">Q", offset))
        with pytest.raises(DamagedPackError):
            pack.find(NAME, MOST)


def test_many_instructions_of_deltas_come_to_an_end(tmp_path: Path) -> None:
    """Fifty deltas of half a million instructions each have 50 kB, and would take minutes."""

    def sized(size: int, kind: int, more: bytes = b"") -> bytes:
        return bytes([size & 15 | kind << 4 | 0x80]) + number(size >> 4) + more

    def number(value: int) -> bytes:
        return bytes([value & 127 | 0x80]) + number(value >> 7) if value > 127 else bytes([value])

    made = 1 << 12
    delta = number(1 << 12) + number(made) + b"\x90\x01" * made
    whole = sized(1 << 12, 3) + zlib.compress(bytes(1 << 12))
    body = whole + sized(len(delta), 6, bytes([len(whole)])) + zlib.compress(delta)
    with ExitStack() as stack:
        assert packed(tmp_path, stack, body, len(HEAD) + len(whole)).find(NAME, MOST) == PackedObject(
            b"blob", bytes(made)
        )
        with pytest.raises(DamagedPackError, match="too much work"):
            packed(tmp_path, stack, body, len(HEAD) + len(whole), work=1 << 18).find(NAME, MOST)


def test_blocks_that_hold_nothing_come_to_an_end(tmp_path: Path) -> None:
    nothing = b"\x78\x9c" + b"\0\0\0\xff\xff" * 10_000
    with ExitStack() as stack, pytest.raises(DamagedPackError, match="too much work"):
        packed(tmp_path, stack, b"\x3a" + nothing, work=1 << 14).find(NAME, MOST)
