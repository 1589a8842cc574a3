"""What base has no more of what is staged."""

from __future__ import annotations

import pytest

from tests.support.commit_model import CommitScribe
from tests.support.old_base import at, scribe
from yolofs.commit.merge.gone_from_base import paths_without_content
from yolofs.paths import RelPath

__all__ = ["scribe"]


def without_content(scribe: CommitScribe, path: bytes) -> bool:
    return path in paths_without_content(scribe.tree, scribe.base, scribe.store, [RelPath(path)])


@pytest.mark.parametrize("becomes", ["nothing", "directory", "link"])
def test_a_file_whose_content_was_in_base_alone_is_lost_once_base_has_it_no_more(
    scribe: CommitScribe, becomes: str
) -> None:
    scribe.chmod(b"a", 0o600)
    assert not without_content(scribe, b"a")
    file = at(scribe, b"a")
    file.unlink()
    if becomes == "directory":
        file.mkdir()
    elif becomes == "link":
        file.symlink_to("elsewhere")
    assert without_content(scribe, b"a")


def test_a_directory_has_no_content_to_lose(scribe: CommitScribe) -> None:
    at(scribe, b"d").mkdir()
    scribe.chmod(b"d", 0o700)
    at(scribe, b"d").rmdir()
    assert not without_content(scribe, b"d")
