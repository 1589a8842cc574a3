"""What the tests of the program share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import may_mount
from tests.support.fault_points import way_of, ways
from tests.support.program import Program, with_few_files


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    """Return the program in a project with a session and a few files."""
    return with_few_files(tmp_path / "project")


@pytest.fixture(params=ways("mounted", "unmounted"))
def ruled(
    request: pytest.FixtureRequest, yolofs: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Program]:
    """Return the program in a project with a home directory of its own, with or without a
    mount.
    """
    may_mount.check()  # whatever is drawn
    home = tmp_path / "home"
    (home / ".config/yolofs").mkdir(parents=True)
    (home / ".config/yolofs/config.toml").write_text('[rules]\n"~/notes" = "allow"\n')
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (yolofs.project / ".yolofs.toml").write_text('[rules]\nvendor = "read-only"\n')
    if way_of(request, "mounted", "unmounted") == "unmounted":
        yield yolofs
    else:
        with yolofs.mounted():
            yield yolofs
