"""Which changes make code on the host: every way in which such a file can come, and what is
ordinary work.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.scribe import Scribe
from yolofs.changes.changes import compare
from yolofs.hostcode.code_files import FileMarker, Table
from yolofs.hostcode.commands import SearchPath
from yolofs.hostcode.marker import Marker
from yolofs.state.tree import Tree
from yolofs.store.base import Base
from yolofs.text.path_patterns import parse

HARMLESS = b'[core]\n\tbare = false\n[remote "origin"]\n\turl = https://example.org/x\n'
EVIL = b"[core]\n\tfsmonitor = ./x\n"


@pytest.fixture
def scribe(tmp_path: Path) -> Scribe:
    """A machine with a home, in it a project that is a repository, and a directory beside."""
    base = tmp_path / "base"
    for directory in (
        "home/u/p/.git/hooks",
        "home/u/p/src",
        "home/u/p/d",
        "home/u/.ssh",
        "home/u/dotfiles",
        "home/u/bin",
    ):
        (base / directory).mkdir(parents=True)
    files = {
        "p/.git/config": HARMLESS,
        "p/.git/HEAD": b"ref: refs/heads/main\n",
        "p/.git/hooks/pre-commit": b"#!/bin/sh\n",
        "p/src/x.c": b"int x;\n",
        "p/d/f": b"f\n",
        "p/Makefile": b"all:\n",
        "dotfiles/bashrc": b"# x\n",
    }
    for name, content in files.items():
        (base / "home/u" / name).write_bytes(content)
    (base / "home/u/.bashrc").symlink_to("dotfiles/bashrc")
    return Scribe(bytes(base), bytes(tmp_path / "store"))


def marks(scribe: Scribe, *more: str, search: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the marks of what has been done, by paths relative to the home directory."""
    base = scribe.base
    home = base.path(b"home/u")
    table = Table(base, home + b"/p", home, more, None)
    marker = Marker(
        SearchPath(base, [base.path(path.encode()) for path in search]),
        lambda changes: FileMarker(table, base, scribe.store, changes),
    )
    changes = compare(Tree(), scribe.tree, base, scribe.store)
    found = marker.marks(changes)
    with pytest.MonkeyPatch.context() as patch:  # the shortcut that most files take says nothing else
        patch.setattr(FileMarker, "_is_plain", lambda *_: False)
        assert marker.marks(changes) == found
    words = {path: " ".join(mark.value for mark in one) for path, one in found.items()}
    return {os.fsdecode(path).removeprefix("home/u/"): word for path, word in words.items()}


def write(scribe: Scribe, name: str, content: bytes = b"#!/bin/sh\nx\n", mode: int = 0o644) -> None:
    """Write a file below the home directory, with the directories that it needs."""
    path = f"home/u/{name}".encode()
    above = b""
    for part in path.split(b"/")[:-1]:
        above = above + b"/" + part if above else part
        if scribe.shown(above) is None:
            scribe.mkdir(above)
    scribe.write(path, content, mode)


AT = {
    "p/.git/hooks/post-checkout": "git",
    "p/.git/hooks/lib/helper": "git",
    "p/.git/hooks/pre-commit.sample": "",
    "p/.git/rebase-merge/git-rebase-todo": "git",
    "p/.git/refs/heads/config": "",
    "p/.git/refs/heads/hooks/x": "",
    "p/.git/objects/ab/cdef": "",
    "p/.git/index": "git",
    "p/.git/sequencer/opts": "git",
    "p/.git/sequencer/todo": "",
    "p/.git/remotes/origin": "git",
    "p/.git/branches/origin": "git",
    "p/.git/refs/remotes/origin/main": "",
    "p/.git/refs/heads/sequencer/opts": "",
    "p/.git/commondir": "git",
    "p/sub/.git/hooks/update": "git",
    "p/.husky/pre-commit": "git",
    "p/.pre-commit-config.yaml": "git",
    "p/.lefthook.toml": "git",
    "p/.config/lefthook-local.json": "git",
    "p/.lefthook/pre-commit/x.sh": "git",
    "p/.hg/hgrc-not-shared": "git",
    "p/.hg/sharedpath": "git",
    "p/.sl/config": "git",
    "p/.jj/repo": "git",
    "p/q/.jj/repo/store/type": "",
    "p/q/.jj/repo/config.toml": "git",
    "p/.qwen/settings.json": "agent",
    "p/.clinerules/hooks/PreToolUse": "agent",
    "p/.gemini/policies/x.toml": "agent",
    "p/.codex/environments/environment.toml": "agent",
    "p/.github/mcp.json": "agent",
    "p/.github/copilot-instructions.md": "",
    "p/.cursor/permissions.json": "agent",
    ".gemini/trustedFolders.json": "agent",
    ".copilot/hooks/x.json": "agent",
    "p/.envrc.local": "directory",
    "p/flake.nix": "directory",
    "p/flake.lock": "",
    "p/.tool-versions": "directory",
    ".local/share/direnv/allow/0123": "directory",
    ".local/state/mise/trusted-configs/x": "directory",
    "p/.dir-locals.el": "editor",
    "p/.zed/tasks.json": "editor",
    ".config/Code - OSS/User/settings.json": "editor",
    ".local/share/nvim/lazy/x/plugin/x.lua": "editor",
    ".zshrc.zwc": "shell",
    ".nvm/nvm.sh": "shell",
    ".tmux/plugins/tpm/tpm": "shell",
    ".config/kitty/kitty.conf": "shell",
    ".forward": "login",
    ".config/niri/config.kdl": "login",
    ".local/share/gnome-shell/extensions/x/extension.js": "login",
    ".gdbearlyinit": "tool",
    ".curlrc": "tool",
    ".wgetrc": "tool",
    "p/_darcs/prefs/defaults": "git",
    "p/.clinerules/style.md": "",
    "p/.crush.json": "agent",
    "p/.vimrc": "directory",
    "p/sub/.gvimrc": "directory",
    "p/.config/mise/conf.d/x.toml": "directory",
    "p/.vim/coc-settings.json": "editor",
    "p/x.sublime-project": "editor",
    "p/.cursor/worktrees.json": "agent",
    "p/.envrc": "directory",
    "p/deep/er/.envrc": "directory",
    "p/mise.toml": "directory",
    "p/.vscode/tasks.json": "editor",
    "p/.vscode/settings.json": "editor",
    "p/.vscode/launch.json": "",
    "p/.vscode/extensions.json": "",
    "p/x.code-workspace": "editor",
    "p/.devcontainer/devcontainer.json": "editor",
    "p/.devcontainer/a/devcontainer.json": "editor",
    "p/.devcontainer/Dockerfile": "",
    "p/.idea/misc.xml": "",
    "p/.idea/watcherTasks.xml": "editor",
    "p/.claude/settings.json": "agent",
    "p/.claude/settings.local.json": "agent",
    "p/.codex/hooks.json": "agent",
    "p/.cursor/mcp.json": "agent",
    "p/.mcp.json": "agent",
    "p/.github/hooks/yolofs.json": "agent",
    "p/.github/workflows/ci.yml": "",
    "p/AGENTS.md": "",
    "p/CLAUDE.md": "",
    "p/Makefile": "",
    "p/package.json": "",
    "p/.npmrc": "",
    "p/src/hooks/useThing.ts": "",
    "p/src/config": "",
    "p/conftest.py": "",
    "p/.yolofs.toml": "yolofs",
    "p/node_modules/x/.vscode/settings.json": "",
    "p/node_modules/x/.git/hooks/update": "git",
    "p/.venv/lib/python3/site-packages/x.pth": "",
    ".bash_profile": "shell",
    ".profile": "shell",
    ".zshrc": "shell",
    ".config/fish/config.fish": "shell",
    ".config/fish/functions/ls.fish": "shell",
    ".ssh/authorized_keys": "ssh",
    ".ssh/rc": "ssh",
    ".config/autostart/x.desktop": "login",
    ".config/systemd/user/x.service": "login",
    ".npmrc": "tool",
    ".gitconfig": "git",
    ".local/lib/python3.11/site-packages/x.pth": "tool",
    ".config/yolofs/config.toml": "yolofs",
    ".config/other": "",
    "Documents/x": "",
}
"""The mark that something written at a path gets, none where that is ordinary work."""


def test_what_is_written_at_which_path(scribe: Scribe) -> None:
    for name in AT:
        write(scribe, name)
    assert marks(scribe) == {name: mark for name, mark in AT.items() if mark}


SYSTEM = (
    "/etc/profile.d/x.sh",
    "/etc/ld.so.preload",
    "/etc/sudoers.d/x",
    "/etc/pam.d/sshd",
    "/etc/udev/rules.d/x.rules",
    "/etc/systemd/system/x.service",
    "/usr/lib/systemd/system/x.service",
    "/etc/cron.d/x",
    "/etc/cron.daily/x",
    "/var/spool/cron/crontabs/u",
    "/etc/apt/sources.list.d/x.list",
    "/root/.bashrc",
    "/home/somebody/.ssh/authorized_keys",
    "/home/somebody/.local/lib/python3/site-packages/usercustomize.py",
    "/usr/lib/python3.12/sitecustomize.py",
    "/usr/lib/x86_64-linux-gnu/libc.so.6",
    "/usr/local/lib/libx.so",
    "/usr/lib/modules/6.1/x.ko",
    "/var/lib/dpkg/info/x.postinst",
    "/etc/hosts",
    "/etc/environment.d/x.conf",
    "/etc/claude-code/managed-settings.json",
)
ORDINARY = (
    "/usr/lib/x/y.so",
    "/usr/local/lib/python3.12/site-packages/x.so",
    "/etc/hostname",
    "/usr/share/doc/x",
    "/home/somebody/notes",
    "/var/lib/x",
    "/opt/x",
)


def test_files_of_the_system_and_of_other_users() -> None:
    patterns = Table(Base(b"/"), b"/nowhere/p", b"/nowhere", (), None).fixed(())
    assert [path for path in SYSTEM if not patterns.fits(path[1:].encode())] == []
    assert [path for path in ORDINARY if patterns.fits(path[1:].encode())] == []


HOOK = b"home/u/p/.git/hooks/pre-commit"
NEW_HOOK = b"home/u/p/.git/hooks/pre-push"
HOOKS = b"home/u/p/.git/hooks"


def modify(scribe: Scribe) -> None:
    scribe.write(HOOK, b"#!/bin/sh\nevil\n")


def chmod(scribe: Scribe) -> None:
    scribe.chmod(HOOK, 0o755)


def rename_in(scribe: Scribe) -> None:
    scribe.rename(b"home/u/p/src/x.c", NEW_HOOK)


def rename_within(scribe: Scribe) -> None:
    scribe.rename(HOOK, NEW_HOOK)


def rename_over(scribe: Scribe) -> None:
    scribe.rename(b"home/u/p/src/x.c", HOOK)


def exchange(scribe: Scribe) -> None:
    scribe.exchange(b"home/u/p/src/x.c", HOOK)


def link(scribe: Scribe) -> None:
    scribe.link(b"home/u/p/src/x.c", NEW_HOOK)


def link_out_and_write(scribe: Scribe) -> None:
    scribe.link(HOOK, b"home/u/p/src/y")
    scribe.write(b"home/u/p/src/y", b"evil\n")


def symlink(scribe: Scribe) -> None:
    scribe.symlink(NEW_HOOK, b"../../src/x.c")


def fifo(scribe: Scribe) -> None:
    scribe.mkfifo(NEW_HOOK)


def directory_over(scribe: Scribe) -> None:
    scribe.rename(HOOKS, b"home/u/p/old")
    scribe.rename(b"home/u/p/d", HOOKS)


def staged_directory_over(scribe: Scribe) -> None:
    scribe.remove(HOOKS)
    scribe.mkdir(b"home/u/p/x")
    scribe.write(b"home/u/p/x/pre-commit", b"evil\n")
    scribe.rename(b"home/u/p/x", HOOKS)


def exchanged_directories(scribe: Scribe) -> None:
    scribe.exchange(b"home/u/p/d", HOOKS)


def repository_above(scribe: Scribe) -> None:
    scribe.rename(b"home/u/p/.git", b"home/u/p/d/.git")


def link_for_hooks(scribe: Scribe) -> None:
    scribe.remove(HOOKS)
    scribe.symlink(HOOKS, b"../src")


def link_for_repository(scribe: Scribe) -> None:
    scribe.rename(b"home/u/p/.git", b"home/u/p/g")
    scribe.symlink(b"home/u/p/.git", b"g")


def file_for_repository(scribe: Scribe) -> None:
    scribe.write(b"home/u/p/d/.git", b"gitdir: ../evil\n")


def others_may_write(scribe: Scribe) -> None:
    scribe.chmod(HOOKS, 0o777)


def others_may_write_above(scribe: Scribe) -> None:
    scribe.chmod(b"home/u/p/.git", 0o777)


@pytest.mark.parametrize(
    "way",
    [
        modify,
        chmod,
        rename_in,
        rename_within,
        rename_over,
        exchange,
        link,
        link_out_and_write,
        symlink,
        fifo,
        directory_over,
        staged_directory_over,
        exchanged_directories,
        repository_above,
        link_for_hooks,
        link_for_repository,
        file_for_repository,
        others_may_write,
        others_may_write_above,
    ],
)
def test_every_way_in_which_a_hook_can_come(scribe: Scribe, way: Callable[[Scribe], None]) -> None:
    assert marks(scribe) == {}
    way(scribe)
    assert "git" in marks(scribe).values()


def test_a_table_directory_that_others_may_write_to_counts(scribe: Scribe) -> None:
    scribe.chmod(b"home/u/.ssh", 0o777)
    assert marks(scribe) == {".ssh": "ssh"}


def test_what_goes_and_what_is_only_touched_does_not_count(scribe: Scribe) -> None:
    scribe.utime(HOOK, 5)
    scribe.remove(b"home/u/.bashrc")
    assert marks(scribe) == {}
    scribe.remove(HOOK)
    assert marks(scribe) == {}


def test_what_a_link_of_base_leads_to_is_what_counts(scribe: Scribe) -> None:
    scribe.write(b"home/u/dotfiles/bashrc", b"evil\n")
    assert marks(scribe) == {"dotfiles/bashrc": "shell"}


def test_links_in_a_directory_of_the_table_count_too(scribe: Scribe) -> None:
    base = Path(os.fsdecode(scribe.base.root))
    (base / "home/u/.config").mkdir()
    (base / "home/u/dotfiles/fish").mkdir()
    (base / "home/u/.config/fish").symlink_to("../dotfiles/fish")
    (base / "home/u/keys").write_text("x")
    (base / "home/u/.ssh/authorized_keys").symlink_to("../keys")
    write(scribe, "dotfiles/fish/config.fish")
    write(scribe, "keys")
    assert marks(scribe) == {"dotfiles/fish/config.fish": "shell", "keys": "ssh"}


@pytest.mark.parametrize("name", [".config", ".ssh", ".git"])
def test_a_link_in_the_place_of_a_directory_above_counts(scribe: Scribe, name: str) -> None:
    if scribe.shown(f"home/u/{name}".encode()) is not None:
        scribe.remove(f"home/u/{name}".encode())
    scribe.symlink(f"home/u/{name}".encode(), b"p/d")
    assert name in marks(scribe)


def test_hooks_elsewhere_count_as_base_has_them(scribe: Scribe) -> None:
    base = Path(os.fsdecode(scribe.base.root)) / "home/u"
    (base / "p/.git/config").write_bytes(b"[core]\nhooksPath = .githooks\n[include]\npath = ../team.gitconfig\n")
    (base / "p/.githooks").mkdir()
    (base / ".gitconfig").write_text("[core]\nhooksPath = ~/my-hooks\n")
    write(scribe, "p/.githooks/pre-commit")
    write(scribe, "p/team.gitconfig")
    write(scribe, "my-hooks/pre-commit")
    expected = {"p/.githooks/pre-commit": "git", "p/team.gitconfig": "git", "my-hooks/pre-commit": "git"}
    assert marks(scribe) == expected


def test_a_tree_does_not_make_all_of_the_project_suspicious_by_links_and_settings(scribe: Scribe) -> None:
    """Else nobody would read what is named."""
    base = Path(os.fsdecode(scribe.base.root)) / "home/u"
    (base / "p/.git/config").write_bytes(b"[core]\nhooksPath = .\n[include]\npath = ..\n")
    (base / "p/.husky").mkdir()
    (base / "p/.husky/x").symlink_to("..")
    (base / "p/.vscode").symlink_to(".")
    write(scribe, "p/src/y.c")
    write(scribe, "p/pre-commit")
    assert marks(scribe) == {"p/pre-commit": "git"}


def test_hooks_that_are_a_link_in_base_count_where_it_leads(scribe: Scribe) -> None:
    base = Path(os.fsdecode(scribe.base.root)) / "home/u/p"
    (base / ".git/hooks/pre-commit").unlink()
    (base / ".git/hooks").rmdir()
    (base / ".git/hooks").symlink_to("../scripts")
    (base / "scripts").mkdir()
    write(scribe, "p/scripts/pre-commit")
    assert marks(scribe) == {"p/scripts/pre-commit": "git"}


def test_a_file_that_base_has_under_another_name_too(scribe: Scribe) -> None:
    base = Path(os.fsdecode(scribe.base.root)) / "home/u/p"
    (base / "src/hook").hardlink_to(base / ".git/hooks/pre-commit")
    (base / "src/tool").write_text("x")
    (base / "src/tool").chmod(0o755)
    (base.parent / "bin/tool").hardlink_to(base / "src/tool")
    scribe.write(b"home/u/p/src/hook", b"evil\n")
    scribe.write(b"home/u/p/src/tool", b"evil\n")
    found = marks(scribe, search=("home/u/bin",))
    assert found == {"p/.git/hooks/pre-commit": "git", "bin/tool": "command"}  # a commit parts no names of a file


# ---- git's settings


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
def test_a_directory_that_git_takes_for_a_repository(scribe: Scribe, last: str, evil: str) -> None:
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


def test_pieces_of_a_repository_that_are_moved_together(scribe: Scribe) -> None:
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
def test_a_file_in_the_place_of_a_repository(scribe: Scribe, content: bytes, marked: bool) -> None:
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
def test_where_the_settings_of_a_submodule_may_lead(scribe: Scribe, worktree: bytes, marked: bool) -> None:
    for name in BARE:
        write(scribe, f"p/.git/modules/sub/{name}", b"x")
    write(scribe, "p/.git/modules/sub/config", HARMLESS + b"[core]\nworktree = " + worktree + b"\n")
    assert bool(marks(scribe)) is marked


def test_a_work_tree_of_a_bare_repository(scribe: Scribe) -> None:
    base = Path(os.fsdecode(scribe.base.root)) / "home/u/p/bare.git"
    for name in (*BARE, "worktrees/w/HEAD"):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_bytes(b"x")
    (base / "worktrees/w/commondir").write_text("../..\n")
    evil = ("rebase-merge/git-rebase-todo", "sequencer/opts", "index", "sharedindex.0123")
    for name in (*evil, "ORIG_HEAD", "logs/HEAD"):
        write(scribe, f"p/bare.git/worktrees/w/{name}")
    assert marks(scribe) == {f"p/bare.git/worktrees/w/{name}": "git" for name in evil}


@pytest.mark.parametrize("piece", ["index", "rebase-merge/git-rebase-todo", "sequencer/opts"])
def test_a_work_tree_whose_pieces_come_one_by_one(scribe: Scribe, piece: str) -> None:
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


# ---- settings of yolofs


def test_settings_add_patterns_and_take_none_away(scribe: Scribe) -> None:
    more = ("deploy.sh", "ops", "**/*.service", "~/notes/*", "")
    for name in ("p/deploy.sh", "p/ops/x", "p/a/b.service", "notes/x", "p/src/deploy.sh", "p/.envrc"):
        write(scribe, name)
    listed = ("p/deploy.sh", "p/ops/x", "p/a/b.service", "notes/x")
    assert marks(scribe, *more[:-1]) == {**dict.fromkeys(listed, "listed"), "p/.envrc": "directory"}


def test_every_pattern_of_the_table_stands_once() -> None:
    from yolofs.hostcode.table import GIT_ROWS, rows

    patterns = [row.pattern for row in (*GIT_ROWS, *rows())]
    assert len(set(patterns)) == len(patterns)
    assert all(parse(pattern, b"/", b"/h") for pattern in patterns)
    assert all(pattern.startswith(("/", "~/", "**/")) for pattern in patterns)
