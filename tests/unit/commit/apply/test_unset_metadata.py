"""The note of what a commit could not set."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from yolofs.commit.apply import unset_metadata
from yolofs.commit.apply.unset_metadata import UNSET
from yolofs.paths import RelPath


@pytest.mark.parametrize("lost", [0, 1, 2, 5])
def test_a_note_after_a_torn_line_is_read(tmp_path: Path, lost: int) -> None:
    directory, note = os.fsencode(tmp_path), tmp_path / os.fsdecode(UNSET)
    unset_metadata.add(directory, UNSET, RelPath(b"first"), ("times",))
    note.write_bytes(note.read_bytes()[: -lost or None])
    unset_metadata.add(directory, UNSET, RelPath(b"second"), ("group",))
    unset_metadata.add(directory, UNSET, RelPath(b"second"), ("times",))
    found = unset_metadata.read(directory, UNSET)
    assert found.pop(RelPath(b"second")) == ("group", "times")
    assert found == ({RelPath(b"first"): ("times",)} if lost < 2 else {})
