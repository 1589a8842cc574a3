"""Settings of git and pieces of a repository: they have git run code."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.scribe import Scribe
from tests.unit.hostcode.found_marks import EVIL, HARMLESS, marks, write


@pytest.mark.parametrize(
    ("content", "marked"),
    [
        (HARMLESS + b'[branch "main"]\nremote = origin\nmerge = refs/heads/main\n', False),
        (EVIL, True),
        (HARMLESS + EVIL, True),
        (b"x" * 100_000, True),
        (b"nonsense", True),
    ],
)
def test_settings_of_a_repository_count_by_what_is_in_them(scribe: Scribe, content: bytes, marked: bool) -> None:
    write(scribe, "p/.git/config", content)
    write(scribe, "p/new/.git/config", content)
    expected = {"p/.git/config": "git", "p/new/.git/config": "git"} if marked else {}
    assert marks(scribe) == expected


def test_settings_that_come_by_rename_count_as_new_ones(scribe: Scribe) -> None:
    base = Path(os.fsdecode(scribe.base.root)) / "home/u/p"
    (base / ".git/config").write_bytes(EVIL)
    write(scribe, "p/.git/config", EVIL + b"[user]\nname = x\n")
    assert marks(scribe) == {}  # what base has runs already
    scribe.rename(b"home/u/p/.git/config", b"home/u/p/src/config")
    write(scribe, "p/new/.git/HEAD")
    scribe.rename(b"home/u/p/src/config", b"home/u/p/new/.git/config")
    assert marks(scribe) == {"p/new/.git/config": "git"}


BARE = ("HEAD", "objects/x", "refs/x")


@pytest.mark.parametrize("last", ["HEAD", "objects", "refs", "config", "hooks"])
@pytest.mark.parametrize("evil", ["config", "hooks/pre-commit"])
def test_what_makes_a_directory_a_repository_is_marked_whatever_comes_last(
    scribe: Scribe, last: str, evil: str
) -> None:
    """Whatever comes last: what lies there already is in base, and unsuspected."""
    base = Path(os.fsdecode(scribe.base.root)) / "home/u/p/data"
    for name in (*BARE, evil):
        if name.split("/")[0] != last:
            (base / name).parent.mkdir(parents=True, exist_ok=True)
            (base / name).write_bytes(EVIL)
    assert marks(scribe) == {}
    for name in (*BARE, evil):
        if name.split("/")[0] == last:
            write(scribe, f"p/data/{name}", EVIL)
    if last in {name.split("/")[0] for name in (*BARE, evil)}:
        assert set(marks(scribe).values()) == {"git"}


def test_what_a_repository_would_go_by_elsewhere_counts_when_it_becomes_one(scribe: Scribe) -> None:
    """Neither the file nor the link was anything when it was committed."""
    base = Path(os.fsdecode(scribe.base.root)) / "home/u/p"
    for name in ("shared", "linked/objects", "linked/refs"):
        (base / name).mkdir(parents=True)
    (base / "shared/commondir").write_text("../evil\n")
    (base / "linked/hooks").symlink_to("../src")
    write(scribe, "p/shared/HEAD")
    write(scribe, "p/linked/HEAD")
    assert marks(scribe) == {"p/shared/HEAD": "git", "p/linked/HEAD": "git"}


def test_settings_count_where_the_user_has_them(scribe: Scribe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", os.fsdecode(scribe.base.path(b"home/u/my")))
    write(scribe, "my/fish/config.fish")
    write(scribe, ".config/fish/config.fish")
    assert marks(scribe) == {"my/fish/config.fish": "shell", ".config/fish/config.fish": "shell"}


def test_pieces_of_a_repository_that_are_moved_together_are_marked(scribe: Scribe) -> None:
    base = Path(os.fsdecode(scribe.base.root)) / "home/u/p"
    for name in ("1/objects/x", "2/refs/x", "3/HEAD", "4/config"):
        (base / name).parent.mkdir(parents=True)
        (base / name).write_bytes(EVIL)
    scribe.mkdir(b"home/u/p/r")
    for source in ("1/objects", "2/refs", "3/HEAD", "4/config"):
        scribe.rename(f"home/u/p/{source}".encode(), b"home/u/p/r/" + source.partition("/")[2].encode())
    assert marks(scribe)["p/r/config"] == "git"


def test_a_repository_that_is_moved_whole_counts_for_what_runs_in_it(scribe: Scribe) -> None:
    base = Path(os.fsdecode(scribe.base.root)) / "home/u/p"
    for name in ("tame/x", "wild/x"):
        for piece in BARE:
            (base / name / piece).parent.mkdir(parents=True, exist_ok=True)
            (base / name / piece).write_bytes(b"x")
    (base / "tame/x/config").write_bytes(HARMLESS)
    (base / "wild/x/config").write_bytes(EVIL)
    scribe.rename(b"home/u/p/tame", b"home/u/p/new")
    scribe.rename(b"home/u/p/wild", b"home/u/p/src/wild")
    assert marks(scribe) == {"p/src/wild": "git"}


def test_work_in_a_bare_repository_of_base_is_ordinary(scribe: Scribe) -> None:
    base = Path(os.fsdecode(scribe.base.root)) / "home/u/p/bare.git"
    for name in (*BARE, "config", "hooks/post-receive"):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_bytes(EVIL)
    write(scribe, "p/bare.git/HEAD")
    write(scribe, "p/bare.git/refs/heads/x")
    assert marks(scribe) == {}
    write(scribe, "p/bare.git/hooks/update")
    assert marks(scribe) == {"p/bare.git/hooks/update": "git"}


@pytest.mark.parametrize(
    ("content", "marked"),
    [
        (b"gitdir: ../.git/modules/d\n", False),
        (b"gitdir: /srv/x/.git/worktrees/d\n", False),
        (b"gitdir: ../.git/modules/../../src\n", True),
        (b"gitdir: ../.git/modules\n", True),
        (b"gitdir: ../src\n", True),
        (b"x", True),
    ],
)
def test_a_file_in_the_place_of_a_repository_is_marked_if_it_leads_to_one(
    scribe: Scribe, content: bytes, marked: bool
) -> None:
    write(scribe, "p/d/.git", content)
    assert bool(marks(scribe)) is marked


def test_a_file_that_leads_to_a_repository_made_in_the_view(scribe: Scribe) -> None:
    """As `git init --separate-git-dir` writes it, and `git worktree add` in a bare repository."""
    base = Path(os.fsdecode(scribe.base.root)) / "home/u/p"
    for path in [base / top / name for top in ("old.git", "evil.git") for name in BARE]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    (base / "evil.git/config").write_bytes(EVIL)
    for name in BARE:
        write(scribe, f"p/new.git/{name}")
    for top in ("old", "evil", "new"):
        for name in ("HEAD", "gitdir"):
            write(scribe, f"p/{top}.git/worktrees/w/{name}")
        write(scribe, f"p/{top}.git/worktrees/w/commondir", b"../..\n")
        write(scribe, f"p/tree of {top}/.git", b"gitdir: /home/u/p/%b.git/worktrees/w\n" % top.encode())
        write(scribe, f"p/all of {top}/.git", b"gitdir: ../%b.git\n" % top.encode())
    write(scribe, "p/none/.git", b"gitdir: ../new.git/worktrees/other\n")
    assert marks(scribe) == {f"p/{name}/.git": "git" for name in ("tree of evil", "all of old", "all of evil", "none")}


@pytest.mark.parametrize(
    ("worktree", "marked"),
    [(b"../../../sub", False), (b"../../../../other", True), (b"/home/u", True), (b"../../.git", True)],
)
def test_settings_of_a_submodule_are_marked_if_they_lead_elsewhere(
    scribe: Scribe, worktree: bytes, marked: bool
) -> None:
    for name in BARE:
        write(scribe, f"p/.git/modules/sub/{name}", b"x")
    write(scribe, "p/.git/modules/sub/config", HARMLESS + b"[core]\nworktree = " + worktree + b"\n")
    assert bool(marks(scribe)) is marked


@pytest.mark.parametrize("way", ["new link", "link of base", "by a renamed directory", "above it", "by dots"])
def test_a_work_tree_of_a_submodule_that_a_link_leads_elsewhere_is_marked(scribe: Scribe, way: str) -> None:
    """`git checkout` there would write to where the link leads."""
    base = Path(os.fsdecode(scribe.base.root)) / "home/u/p"
    worktree = b"../../../s"
    if way == "link of base":
        (base / "s").symlink_to("/home/u/.config/autostart")
    elif way == "by a renamed directory":
        (base / "old").mkdir()
        (base / "old/s").symlink_to("/home/u/.config/autostart")
        scribe.rename(b"home/u/p/old", b"home/u/p/new")
        worktree = b"../../../new/s"
    else:
        scribe.symlink(b"home/u/p/s", b"/home/u/.config")
        worktree = {"above it": b"../../../s/autostart", "by dots": b"../../../s/../sub"}.get(way, worktree)
    for name in BARE:
        write(scribe, f"p/.git/modules/sub/{name}", b"x")
    write(scribe, "p/.git/modules/sub/config", HARMLESS + b"[core]\nworktree = " + worktree + b"\n")
    assert marks(scribe) == {"p/.git/modules/sub/config": "git"}


@pytest.mark.parametrize("name", ["group/sub", "group/sub/modules/inner"])
def test_a_link_in_the_place_of_the_work_tree_of_a_submodule_is_marked(scribe: Scribe, name: str) -> None:
    """The settings that lead there came earlier, when no link was on the way."""
    base = Path(os.fsdecode(scribe.base.root)) / "home/u/p"
    for piece in BARE:
        for module in ("group/sub", name):
            (base / f".git/modules/{module}" / piece).parent.mkdir(parents=True, exist_ok=True)
            (base / f".git/modules/{module}" / piece).write_bytes(b"x")
            (base / f".git/modules/{module}/config").write_bytes(HARMLESS)
    up = "../" * (name.count("/") + 3)
    (base / f".git/modules/{name}/config").write_text(f"[core]\nbare = false\nworktree = {up}w/tree\n")
    (base / "w/tree").mkdir(parents=True)
    write(scribe, "p/w/tree/file")
    scribe.symlink(b"home/u/p/other", b"/home/u/.config")
    assert marks(scribe) == {}
    scribe.remove(b"home/u/p/w/tree/file")
    scribe.remove(b"home/u/p/w/tree")
    scribe.symlink(b"home/u/p/w/tree", b"/home/u/.config/autostart")
    assert marks(scribe) == {"p/w/tree": "git"}


def test_a_file_git_that_would_lead_elsewhere_by_a_link_is_marked(scribe: Scribe) -> None:
    base = Path(os.fsdecode(scribe.base.root)) / "home/u/p"
    for name in (*BARE, "config"):
        (base / "fixtures/new.git" / name).parent.mkdir(parents=True, exist_ok=True)
        (base / "fixtures/new.git" / name).write_bytes(EVIL)
    (base / "fixtures/inner").mkdir()
    for name in BARE:
        write(scribe, f"p/new.git/{name}")
    scribe.symlink(b"home/u/p/s", b"fixtures/inner")
    write(scribe, "p/sub/.git", b"gitdir: ../s/../new.git\n")
    assert marks(scribe) == {"p/sub/.git": "git"}


def test_what_is_to_go_on_counts_in_a_repository_whatever_its_name(scribe: Scribe) -> None:
    """As `git init --separate-git-dir` makes it."""
    base = Path(os.fsdecode(scribe.base.root)) / "home/u/p/store"
    for name in BARE:
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_bytes(b"x")
    evil = ("rebase-merge/git-rebase-todo", "sequencer/opts", "remotes/origin", "branches/origin")
    for name in (*evil, "refs/remotes/origin/main", "refs/heads/branches/x"):
        write(scribe, f"p/store/{name}")
        write(scribe, f"p/plain/{name}")
    assert marks(scribe) == {f"p/store/{name}": "git" for name in evil}


def test_what_git_obeys_in_a_work_tree_of_a_bare_repository_is_marked(scribe: Scribe) -> None:
    base = Path(os.fsdecode(scribe.base.root)) / "home/u/p/bare.git"
    for name in (*BARE, "worktrees/w/HEAD"):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_bytes(b"x")
    (base / "worktrees/w/commondir").write_text("../..\n")
    evil = ("rebase-merge/git-rebase-todo", "sequencer/opts", "index", "sharedindex.0123")
    for name in (*evil, "ORIG_HEAD", "logs/HEAD"):
        write(scribe, f"p/bare.git/worktrees/w/{name}")
    assert marks(scribe) == {f"p/bare.git/worktrees/w/{name}": "git" for name in evil}


def test_a_shared_index_of_a_bare_repository_is_marked_whatever_its_name(scribe: Scribe) -> None:
    base = Path(os.fsdecode(scribe.base.root)) / "home/u/p/store"
    for name in BARE:
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_bytes(b"x")
    write(scribe, "p/store/sharedindex.0123")
    write(scribe, "p/store/packed")
    assert marks(scribe) == {"p/store/sharedindex.0123": "git"}


@pytest.mark.parametrize("piece", ["index", "rebase-merge/git-rebase-todo", "sequencer/opts"])
def test_a_work_tree_counts_whose_pieces_come_one_by_one(scribe: Scribe, piece: str) -> None:
    base = Path(os.fsdecode(scribe.base.root)) / "home/u/p/bare.git"
    for name in (*BARE, f"worktrees/w/{piece}"):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_bytes(b"x")
    (base / "worktrees/w/commondir").write_text("../..\n")
    write(scribe, "p/bare.git/worktrees/w/HEAD")
    assert marks(scribe) == {"p/bare.git/worktrees/w/HEAD": "git"}


def test_an_index_is_read_with_the_hashes_of_its_repository(scribe: Scribe, tmp_path: Path) -> None:
    """Settings that come with it count, and may not come after it."""
    index, settings = sha256_index(tmp_path)
    write(scribe, "p/new/.git/index", index)
    assert marks(scribe) == {"p/new/.git/index": "git"}
    write(scribe, "p/new/.git/config", settings)
    assert marks(scribe) == {}
    write(scribe, "p/.git/config", HARMLESS + b"[extensions]\nobjectFormat = sha256\n")
    assert marks(scribe) == {"p/.git/config": "git"}
    write(scribe, "p/.git/config", HARMLESS)
    base = Path(os.fsdecode(scribe.base.root)) / "home/u/p/old/.git"
    base.mkdir(parents=True)
    (base / "index").write_bytes(index)
    scribe.write(b"home/u/p/old/.git/config", settings)
    assert marks(scribe) == {"p/old/.git/config": "git"}


def sha256_index(tmp_path: Path) -> tuple[bytes, bytes]:
    """Return an index with hashes of 32 bytes, and the settings that say so."""
    git = ["git", "-C", str(tmp_path / "r")]
    subprocess.run(["git", "init", "--object-format=sha256", tmp_path / "r"], check=True, capture_output=True)
    (tmp_path / "r/file").write_text("x")
    subprocess.run([*git, "add", "."], check=True, capture_output=True)
    return (tmp_path / "r/.git/index").read_bytes(), (tmp_path / "r/.git/config").read_bytes()


def test_what_gits_own_commands_make_is_ordinary(scribe: Scribe, tmp_path: Path) -> None:
    """A clone with a submodule and a worktree, as git makes them, put into the view."""
    environment = {**os.environ, "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1", "GIT_ALLOW_PROTOCOL": "file"}

    def git(*words: str) -> None:
        options = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *options, *words], check=True, capture_output=True, env=environment, cwd=tmp_path)

    git("init", "origin")
    git("-C", "origin", "commit", "--allow-empty", "-m", "x")
    git("clone", "origin", "clone")
    git("-C", "clone", "submodule", "add", str(tmp_path / "origin"), "sub")
    git("-C", "clone", "worktree", "add", "inner")
    git("clone", "--bare", "origin", "clone/bare")
    for path in sorted((tmp_path / "clone", *(tmp_path / "clone").rglob("*"))):
        inside = f"home/u/p/{path.relative_to(tmp_path)}".encode()
        if path.is_dir():
            scribe.mkdir(inside)
        else:
            write(scribe, os.fsdecode(inside).removeprefix("home/u/"), path.read_bytes())
    assert marks(scribe) == {}
