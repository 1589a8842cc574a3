"""What is agreed with kernels of several versions as a mount begins."""

from __future__ import annotations

import errno
import struct

import pytest

from yolofs.fuse.direct.handshake import MAX_WRITE, answer_init, serves_xattrs
from yolofs.fuse.direct.kernel_protocol import INIT_OUT, Init

OFFERS_OF_5_4 = 0x03FFFFFB
"""All that a kernel of the protocol's version 7.31 knows, INIT_EXT and younger left out."""
OFFERS_OF_3_15 = 0x0003FFFB


def first_message(minor: int, offered: int, *, major: int = 7) -> bytearray:
    body = struct.pack("=IIII", major, minor, 131072, offered)
    return bytearray(struct.pack("=IIQQIIIHH", 40 + len(body), 26, 2, 0, 0, 0, 0, 0, 0) + body)


def agreed(
    minor: int, offered: int, *, drops_pages_itself: bool = False, xattrs: bool = False
) -> tuple[int, Init, int]:
    """Return minor version, what is accepted, and how many pages a request may have."""
    answer, flags = answer_init(2, first_message(minor, offered), drops_pages_itself=drops_pages_itself, xattrs=xattrs)
    assert struct.unpack_from("=IiQ", answer) == (80, 0, 2)
    fields = INIT_OUT.unpack(answer)
    assert fields[3] == 7
    assert fields[9] == MAX_WRITE
    assert flags == fields[6]
    return fields[4], flags, fields[11]


def test_a_young_kernel_leaves_pages_to_us_and_asks_for_several_names_at_a_time() -> None:
    minor, accepted, pages = agreed(45, 0x7FFFFFFB)
    assert minor == 39
    assert Init.EXPLICIT_INVAL_DATA | Init.PARALLEL_DIROPS | Init.CACHE_SYMLINKS | Init.INIT_EXT in accepted
    assert Init.AUTO_INVAL_DATA not in accepted
    assert pages == 256


def test_no_flag_is_accepted_that_the_kernel_does_not_offer() -> None:
    minor, accepted, _ = agreed(31, OFFERS_OF_5_4)
    assert minor == 31
    assert int(accepted) & ~OFFERS_OF_5_4 == 0


def test_an_old_kernel_drops_pages_by_itself() -> None:
    minor, accepted, _ = agreed(23, OFFERS_OF_3_15)
    assert minor == 23
    assert Init.AUTO_INVAL_DATA in accepted
    assert Init.EXPLICIT_INVAL_DATA not in accepted


def test_where_we_would_tell_it_too_late_the_kernel_drops_pages_by_itself() -> None:
    _, accepted, _ = agreed(45, 0x7FFFFFFB, drops_pages_itself=True)
    assert Init.AUTO_INVAL_DATA in accepted
    assert Init.EXPLICIT_INVAL_DATA not in accepted


ALWAYS = (
    Init.ASYNC_READ | Init.ATOMIC_O_TRUNC | Init.EXPORT_SUPPORT | Init.BIG_WRITES | Init.DO_READDIRPLUS | Init.ASYNC_DIO
)
FROM_5_4 = ALWAYS | Init.PARALLEL_DIROPS | Init.MAX_PAGES | Init.CACHE_SYMLINKS | Init.EXPLICIT_INVAL_DATA
LISTS = Init.POSIX_ACL | Init.DONT_MASK
KERNELS = {
    "3.15": (23, OFFERS_OF_3_15, ALWAYS | Init.AUTO_INVAL_DATA, Init(0)),
    "4.9": (26, 0x001FFFFB, ALWAYS | Init.PARALLEL_DIROPS | Init.AUTO_INVAL_DATA, LISTS),
    "4.20": (28, 0x00FFFFFB, FROM_5_4 & ~Init.EXPLICIT_INVAL_DATA | Init.AUTO_INVAL_DATA, LISTS),
    "5.4": (31, OFFERS_OF_5_4, FROM_5_4, LISTS),
    "5.10": (32, OFFERS_OF_5_4, FROM_5_4, LISTS),
    "5.15": (34, 0x33FFFFFB, FROM_5_4, LISTS | Init.HANDLE_KILLPRIV_V2 | Init.SETXATTR_EXT),
    "6.1": (37, 0x73FFFFFB, FROM_5_4 | Init.INIT_EXT, LISTS | Init.HANDLE_KILLPRIV_V2 | Init.SETXATTR_EXT),
    "6.18": (44, 0x73FFFFFB, FROM_5_4 | Init.INIT_EXT, LISTS | Init.HANDLE_KILLPRIV_V2 | Init.SETXATTR_EXT),
}
"""Minor version, offers, what is accepted of them, and what else with extended attributes."""


@pytest.mark.parametrize(("minor", "offered", "accepted", "more"), KERNELS.values(), ids=KERNELS)
def test_each_kernel_gets_the_flags_that_it_offers_and_yolofs_uses(
    minor: int, offered: int, accepted: Init, more: Init
) -> None:
    assert agreed(minor, offered)[:2] == (min(minor, 39), accepted)
    assert agreed(minor, offered, xattrs=True)[:2] == (min(minor, 39), accepted | more)


@pytest.mark.parametrize(("minor", "offered", "more"), [(at[0], at[1], at[3]) for at in KERNELS.values()], ids=KERNELS)
def test_unless_it_is_set_attributes_are_served_where_a_write_takes_privileges_away_by_us(
    minor: int, offered: int, more: Init
) -> None:
    message = first_message(minor, offered)
    assert serves_xattrs(message, "auto") == (Init.HANDLE_KILLPRIV_V2 in more)
    assert serves_xattrs(message, True)
    assert not serves_xattrs(message, False)


@pytest.mark.parametrize("missing", [Init.POSIX_ACL, Init.DONT_MASK])
def test_access_control_lists_are_agreed_only_together_with_the_umask(missing: Init) -> None:
    _, accepted, _ = agreed(44, 0x73FFFFFB & ~missing, xattrs=True)
    assert Init.POSIX_ACL not in accepted
    assert Init.DONT_MASK not in accepted


@pytest.mark.parametrize("refused", [1 << 16, 1 << 17, 1 << 24], ids=["writeback", "no open", "no opendir"])
def test_flags_that_would_make_the_view_wrong_are_never_accepted(refused: int) -> None:
    _, accepted, _ = agreed(45, 0x7FFFFFFB)
    assert not int(accepted) & refused


@pytest.mark.parametrize(
    ("major", "minor", "offered"),
    [(8, 0, 0x7FFFFFFB), (7, 22, OFFERS_OF_3_15), (7, 31, 0)],
    ids=["8.0", "7.22", "bare"],
)
def test_a_kernel_that_speaks_too_little_is_refused(major: int, minor: int, offered: int) -> None:
    with pytest.raises(OSError, match="version") as refused:
        answer_init(2, first_message(minor, offered, major=major), drops_pages_itself=False, xattrs=False)
    assert refused.value.errno == errno.EPROTO
