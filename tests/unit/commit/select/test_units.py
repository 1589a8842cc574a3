"""Which names go together or not at all."""

from __future__ import annotations

import os

from tests.support.commit_model import CommitScribe, paths_of_unit
from tests.support.old_base import at, scribe

__all__ = ["scribe"]


def test_all_names_of_a_file_born_in_the_view_are_one_unit(scribe: CommitScribe) -> None:
    scribe.write(b"new", b"new")
    scribe.link(b"new", b"also")
    scribe.write(b"other", b"other")
    assert paths_of_unit(scribe, b"new") == paths_of_unit(scribe, b"also") == {b"new", b"also"}
    assert paths_of_unit(scribe, b"other") == {b"other"}


def test_a_deleted_directory_and_what_was_moved_out_of_it_are_one_unit(scribe: CommitScribe) -> None:
    at(scribe, b"d/sub").mkdir(parents=True)
    at(scribe, b"d/sub/x").write_text("x\n")
    scribe.rename(b"d/sub/x", b"z")
    scribe.remove(b"d")
    assert paths_of_unit(scribe, b"z") == paths_of_unit(scribe, b"d") == {b"z", b"d/sub/x", b"d"}


def test_what_was_moved_out_of_a_directory_that_was_itself_moved_out_goes_without_the_deleted_one(
    scribe: CommitScribe,
) -> None:
    at(scribe, b"d/sub").mkdir(parents=True)
    at(scribe, b"d/sub/x").write_text("x\n")
    scribe.rename(b"d/sub/x", b"z")
    scribe.rename(b"d/sub", b"kept")
    scribe.remove(b"d")
    assert paths_of_unit(scribe, b"z") == {b"z", b"d/sub/x"}
    assert paths_of_unit(scribe, b"d") == {b"d", b"kept", b"d/sub"}


def test_all_names_that_base_has_for_a_file_are_one_unit(scribe: CommitScribe) -> None:
    os.link(at(scribe, b"a"), at(scribe, b"second"))
    scribe.remove(b"a")
    scribe.rename(b"second", b"third")
    assert paths_of_unit(scribe, b"third") == paths_of_unit(scribe, b"a") == {b"a", b"second", b"third"}
