"""No view shows what belongs to sessions, of this user or another: it cannot be listed, made,
renamed or removed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.program import Program

pytestmark = pytest.mark.mount

TRIES = """
for path in {paths}; do
    stat -c 'SEEN %n' "$path"; ls -d "$path"; cat "$path/session.json"; cat "$path"
    mkdir "$path" && echo MADE "$path"; touch "$path" && echo MADE "$path"; ln -s x "$path" && echo MADE "$path"
    echo x > elsewhere; mv elsewhere "$path" && echo MADE "$path"
done
"""


@pytest.fixture(autouse=True)
def tmp_of_the_view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have runs see what the view shows of the state directory, which is in ``/tmp``."""
    config = tmp_path / "config/yolofs/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[run]\ntmp = "view"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def tree(tmp_path: Path, yolofs: Program, state: Path) -> Path:
    """A directory with parts of sessions in many forms, and with files of the same names that are
    none.
    """
    tree = yolofs.project / "tree"
    for name in ("alice/.local/state/yolofs", "anywhere/kept", "sticky/.yolofs-1000"):
        for part in ("sessions/0123456789ab", "registry", "trust"):
            (tree / name / part).mkdir(parents=True)
        (tree / name / ".yolofs-state").touch()
        (tree / name / "seal.key").touch()
        (tree / name / "sessions/0123456789ab/session.json").write_text("{}")
    (tree / "earlier/.yolofs").mkdir(parents=True)
    (tree / "earlier/.yolofs/journal").write_text("yolofs-journal 1\n")
    (tree / "linked").mkdir()
    (tree / "linked/.yolofs").symlink_to("/anywhere/sessions/0123456789ab")
    for name in ("plain/yolofs", "plain/sessions", "plain/registry", "plain/trust", "plain/.yolofs-1000x"):
        (tree / name).mkdir(parents=True)
        (tree / name / "file").write_text("shown\n")
    (tree / "plain/seal.key").write_text("shown\n")
    return tree


HIDDEN = (
    "alice/.local/state/yolofs",
    "anywhere/kept/sessions",
    "anywhere/kept/registry",
    "anywhere/kept/trust",
    "anywhere/kept/seal.key",
    "anywhere/kept/.yolofs-state",
    "sticky/.yolofs-1000",
    "earlier/.yolofs",
    "linked/.yolofs",
)


def test_nothing_of_a_state_directory_is_shown_or_made(yolofs: Program, tree: Path, state: Path) -> None:
    own = [yolofs.project / ".yolofs", state, state / "sessions", Path(os.path.realpath(yolofs.session))]
    never = [tree / "plain/.yolofs-state", tree / "plain/.yolofs-7", tree / ".yolofs-1000"]
    paths = [*(tree / name for name in HIDDEN), *own, *never]
    done = yolofs("run", "--", "sh", "-c", TRIES.format(paths=" ".join(map(str, paths))) + "exit 0", cwd=tree)
    assert "SEEN" not in done.out
    assert "MADE" not in done.out
    assert "{" not in done.out
    listed = yolofs("run", "--", "find", tree, state.parent, "-mindepth", "1").out.splitlines()
    assert not set(listed) & set(map(str, paths))


def test_a_directory_that_is_only_called_like_a_state_directory_is_shown(yolofs: Program, tree: Path) -> None:
    plain = sorted(str(path.relative_to(tree)) for path in (tree / "plain").rglob("*"))
    done = yolofs("run", "--", "find", "plain", "-mindepth", "1", cwd=tree)
    assert sorted(done.out.splitlines()) == plain


def test_a_directory_that_holds_parts_of_a_session_is_neither_removed_nor_emptied(yolofs: Program, tree: Path) -> None:
    yolofs("run", "--", "sh", "-c", "rm -rf alice anywhere sticky earlier linked; exit 0", cwd=tree)
    yolofs("commit", "--yes")
    for name in HIDDEN:
        assert os.path.lexists(tree / name), name


def test_a_link_to_a_state_directory_or_session_leads_nowhere(yolofs: Program, tree: Path, state: Path) -> None:
    (tree / "way").symlink_to(state)
    (tree / "session").symlink_to(os.path.realpath(yolofs.session))
    done = yolofs(
        "run", "--", "sh", "-c", "ls way/ session/; cat session/journal; echo x > session/x", cwd=tree, code=2
    )
    assert done.out == ""
    assert not (Path(os.path.realpath(yolofs.session)) / "x").exists()


def test_a_mount_shows_no_more_than_a_run(yolofs: Program, tree: Path) -> None:
    with yolofs.mounted("--root", ".") as view:
        for name in HIDDEN:
            assert not os.path.lexists(view / "tree" / name), name
        assert not os.path.lexists(view / ".yolofs")
        assert sorted(os.listdir(view / "tree/alice/.local/state")) == []
