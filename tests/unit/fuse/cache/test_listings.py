"""Which listing is kept, for which directory, and for how long it is told again."""

from __future__ import annotations

import stat
from types import SimpleNamespace

import pytest

from tests.support.hand_clock import HandClock
from yolofs.fuse.cache.listings import MAX_NAMES, Listing, Listings
from yolofs.overlay.inodes import Inode


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


class Versions:
    """What all listings depend on, set by hand."""

    now: tuple[int, int] = (0, 0)

    def __call__(self) -> tuple[int, int]:
        return self.now


@pytest.fixture
def versions() -> Versions:
    return Versions()


@pytest.fixture
def listings(versions: Versions, clock: HandClock) -> Listings:
    return Listings(versions, clock)


def directory(number: int = 7) -> Inode:
    return Inode(number, stat.S_IFDIR, None, b"d")


def told(listings: Listings, inode: Inode, *lifetimes_s: float | None) -> Listing:
    """Keep a listing with one name for each lifetime; return it."""
    listing = listings.begin(inode)
    for number, lifetime_s in enumerate(lifetimes_s):
        entry = SimpleNamespace(entry_timeout=lifetime_s, attr_timeout=lifetime_s)
        listing.tell(number, b"%d" % number, entry, None, lifetime_s)
    listings.keep(listing)
    return listing


def test_a_listing_is_told_for_what_is_left_of_the_shortest_lifetime(listings: Listings, clock: HandClock) -> None:
    inode = directory()
    listing = told(listings, inode, 1.0, 60.0, None)
    for after_s in (0.0, 0.1, 0.124, 0.3, 0.5, 0.8):
        clock.now = 100 + after_s
        assert listings.find(inode) is listing
        for row in listing.rows[:2]:
            assert 0 < row.entry.entry_timeout == row.entry.attr_timeout <= 1 - after_s
    clock.now = 100.9
    assert listings.find(inode) is None


def test_what_only_the_view_can_change_is_told_as_it_was(
    listings: Listings, versions: Versions, clock: HandClock
) -> None:
    inode = directory()
    listing = told(listings, inode, None, None)
    clock.now += 1e6
    assert listings.find(inode) is listing
    versions.now = (0, 1)
    assert listings.find(inode) is None


def test_a_change_of_the_names_ends_a_listing(listings: Listings) -> None:
    inode = directory()
    listing = told(listings, inode, None, 60.0)
    assert listings.find(inode) is listing
    inode.changes += 1
    assert listings.find(inode) is None
    assert not listings.is_valid(listing)


def test_a_name_that_is_looked_up_anew_lives_no_longer_than_the_others(listings: Listings, clock: HandClock) -> None:
    inode = directory()
    listing = told(listings, inode, 8.0, None)
    clock.now += 3.5
    assert listings.find(inode) is listing
    entry = SimpleNamespace(entry_timeout=8.0, attr_timeout=8.0)
    listing.tell(1, b"1", entry, None, 8.0)
    for after_s in (0.0, 0.4, 1.4, 3.4):
        clock.now = 103.5 + after_s
        assert listings.find(inode) is listing
        assert [row.name for row in listing.rows] == [b"0", b"1"]
        assert {row.entry.entry_timeout for row in listing.rows} == {entry.attr_timeout}
        assert 0 < entry.attr_timeout <= 8 - 3.5 - after_s
    clock.now = 103.5 + 3.6
    assert listings.find(inode) is None


def test_a_name_with_a_shorter_lifetime_shortens_them_all(listings: Listings, clock: HandClock) -> None:
    inode = directory()
    listing = told(listings, inode, 60.0, None)
    assert listings.find(inode) is listing
    listing.tell(1, b"1", SimpleNamespace(entry_timeout=1.0, attr_timeout=1.0), None, 1.0)
    clock.now += 0.5
    assert listings.find(inode) is listing
    assert all(row.entry.attr_timeout <= 0.5 for row in listing.rows)
    clock.now += 0.5
    assert listings.find(inode) is None


def test_dropping_a_listing_leaves_a_newer_one_alone(listings: Listings) -> None:
    inode = directory()
    older = told(listings, inode, None)
    newer = told(listings, inode, None)
    listings.drop(older)
    assert listings.find(inode) is newer


def test_the_end_of_a_listing_lives_no_longer_than_its_names(listings: Listings, clock: HandClock) -> None:
    inode = directory()
    listing = listings.begin(inode, 1.0)
    listings.keep(listing)
    clock.now += 0.8
    assert listings.find(inode) is listing
    clock.now += 0.2
    assert listings.find(inode) is None


def test_a_listing_with_an_entry_of_lifetime_0_is_not_kept(listings: Listings) -> None:
    inode = directory()
    told(listings, inode, 0.0, 60.0)
    assert listings.find(inode) is None


def test_another_directory_of_the_same_number_has_no_listing(listings: Listings) -> None:
    told(listings, directory(), 60.0)
    assert listings.find(directory()) is None


def test_a_listing_that_is_too_long_is_not_kept(listings: Listings) -> None:
    inode = directory()
    told(listings, inode, *[None] * (MAX_NAMES + 1))
    assert listings.find(inode) is None
    assert listings.find(inode) is None
    listing = told(listings, inode, *[None] * MAX_NAMES)
    assert listings.find(inode) is listing
    listings.drop(listing)
    listings.drop(listing)
    assert listings.find(inode) is None


def test_the_names_of_all_listings_are_bounded(listings: Listings) -> None:
    inodes = [directory(number) for number in range(6)]
    for inode in inodes:
        told(listings, inode, *[None] * MAX_NAMES)
    assert [inode.number for inode in inodes if listings.find(inode) is not None] == [5]
