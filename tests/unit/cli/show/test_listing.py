"""The list of changes that people read."""

from __future__ import annotations

import stat

import pytest

from yolofs.changes.changes import Change, ChangeKind, Side
from yolofs.cli.show import listing
from yolofs.cli.show.listing import PathDisplay, emit_changes
from yolofs.paths import RelPath
from yolofs.state.regions import Regions

NAMES = [
    b"plain.txt",
    b"with space",
    b"-dash",
    b'quo"ted',
    b"back\\slash",
    b"new\nline",
    "\u00e4".encode(),
    b"\xff",
    b"~",
    b"a" * 255,
    b"%s{}",
]
DIRECTORIES = [b"", b"home", b"home/p", b"home/p/d", b"home/p/tmp", b"home/p/tmp/x", b"home/p/od d", b"tmp", b"home/pp"]


def added(path: bytes, kind: int) -> Change:
    return Change(ChangeKind.ADDED, RelPath(path), new=Side(kind, 0o644, 0, 0, 0, 1, 0, b"/m", b"/m", None))


@pytest.mark.parametrize("project", [b"home/p", b"", None])
@pytest.mark.parametrize("root", [b"/", b"/base dir"])
def test_plain_additions_are_shown_as_all_others_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, project: bytes | None, root: bytes
) -> None:
    paths = [directory + b"/" + name if directory else name for directory in DIRECTORIES for name in NAMES]
    paths += [directory for directory in DIRECTORIES if directory]
    changes = [added(path, kind) for path in paths for kind in (stat.S_IFREG, stat.S_IFDIR)]
    regions = Regions(RelPath(project or b""), (RelPath(b"tmp"), RelPath(b"home/p/tmp")))
    path_display = PathDisplay(root, RelPath(project) if project is not None else None)
    emit_changes(changes, path_display, regions, {})
    shown = capsys.readouterr().out
    monkeypatch.setattr(listing._PlainAdditions, "takes", lambda *_: False)
    emit_changes(changes, path_display, regions, {})
    assert capsys.readouterr().out == shown
    assert shown.count("\n") >= len(changes)


def test_paths_are_shown_relative_to_the_project_or_absolute() -> None:
    path_display = PathDisplay(b"/", RelPath(b"home/p"))
    assert path_display.show_path(b"home/p/a/b") == "a/b"
    assert path_display.show_path(b"home/p") == "."
    assert path_display.show_path(b"home/p2/a") == "/home/p2/a"
    assert PathDisplay(b"/r", RelPath(b"")).show_path(b"a") == "a"
    assert PathDisplay(b"/r", None).show_path(b"a") == "/r/a"
