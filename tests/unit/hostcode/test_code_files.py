"""Changes that make code on the host, in every way for such a file to come about; and ordinary
work.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.core_in_python import core_in_python
from tests.support.scribe import Scribe
from tests.unit.hostcode.found_marks import EVIL, marks, write
from yolofs.hostcode.code_files import CodeFileTable, built_in
from yolofs.hostcode.mark import Mark
from yolofs.hostcode.mark_finder import MarkFinder
from yolofs.hostcode.table_links import Links
from yolofs.paths import RelPath
from yolofs.store.base import Base
from yolofs.text.path_patterns import parse_pattern

AT = {
    "p/.git/hooks/post-checkout": "git",
    "p/.git/hooks/lib/helper": "git",
    "p/.repo/repo/main.py": "git",
    "p/captainhook.json": "git",
    "p/.Rprofile": "directory",
    "p/.shadowenv.d/1.lisp": "directory",
    "p/mise.production.toml": "directory",
    "p/.direnv/flake-profile-1.rc": "directory",
    "p/.direnv/python-3.11/bin/ls": "directory",
    "p/bin/hermit": "directory",
    "p/bin/other": "",
    "p/.prototools": "directory",
    "p/.ropeproject/config.py": "editor",
    "p/.lite_project.lua": "editor",
    "p/gptme.toml": "agent",
    ".k5login": "ssh",
    ".selected_editor": "shell",
    ".config/chromium/NativeMessagingHosts/x.json": "login",
    ".pyenv/versions/3.12.1/bin/python": "tool",
    "p/.externalToolBuilders/x.launch": "editor",
    ".config/git/allowed_signers": "git",
    ".doom.d/config.el": "editor",
    ".fzf/shell/key-bindings.bash": "shell",
    ".zshrc.local": "shell",
    ".pyenv/versions/3.12.1/lib/python3.12/site-packages/x.pth": "tool",
    ".config/gh/config.yml": "tool",
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
    "p/rust-toolchain.toml": "directory",
    "p/.config/mise/config.production.toml": "directory",
    "p/default.nix": "directory",
    "p/nix/packages.nix": "",
    "p/.vscode/c_cpp_properties.json": "editor",
    "p/rust-analyzer.toml": "editor",
    ".aws/amazonq/mcp.json": "agent",
    ".config/user-dirs.dirs": "shell",
    ".vnc/xstartup": "login",
    ".Xresources": "login",
    ".config/redshift/hooks/x": "login",
    ".config/chromium-flags.conf": "login",
    ".asoundrc": "login",
    ".local/share/vulkan/implicit_layer.d/x.json": "login",
    ".config/ImageMagick/delegates.xml": "login",
    ".local/share/jupyter/kernels/x/kernel.json": "tool",
    ".cache/pre-commit/repo0123/py_env/bin/ruff": "tool",
    ".npm/_npx/0123/node_modules/.bin/server": "tool",
    ".npm/_cacache/index-v5/00/01": "",
    ".cache/node/corepack/v1/pnpm/9.0.0/bin/pnpm.cjs": "tool",
    ".cache/pip/http/0": "",
    "p/.envrc.local": "directory",
    "p/flake.nix": "directory",
    "p/flake.lock": "directory",
    "p/devenv.lock": "directory",
    "p/poetry.lock": "",
    "p/.RData": "directory",
    "p/sub/jupyter_server_config.py": "directory",
    "p/jupyter_notes.py": "",
    "p/.bsp/sbt.json": "editor",
    "p/hie.yaml": "editor",
    "p/.luarc.json": "editor",
    "p/.obsidian/plugins/x/main.js": "editor",
    "p/.obsidian/app.json": "",
    "p/.lintstagedrc.json": "git",
    "p/.githooks/pre-push": "git",
    "p/.agent/workflows/x.md": "agent",
    "p/.roo/tools/x.ts": "agent",
    "p/.kilo/kilo.json": "agent",
    ".pi/agent/extensions/x.ts": "agent",
    ".claude/shell-snapshots/snapshot-bash-1.sh": "agent",
    ".config/bash_completion": "shell",
    ".config/elvish/rc.elv": "shell",
    ".mbsyncrc": "login",
    ".cache/uv/archive-v0/x/bin/server": "tool",
    ".cache/uv/environments-v2/x": "tool",
    ".cache/uv/simple-v16/x": "",
    ".local/share/uv/tools/ruff/bin/ruff": "tool",
    ".local/share/pipx/venvs/x/bin/x": "tool",
    "p/.tool-versions": "directory",
    ".local/share/direnv/allow/0123": "directory",
    ".local/state/mise/trusted-configs/x": "directory",
    "p/.dir-locals.el": "editor",
    "p/.zed/tasks.json": "editor",
    ".config/Code - OSS/User/settings.json": "editor",
    ".config/Melty/User/settings.json": "editor",
    ".config/Melty/User/globalStorage/x": "",
    "bin/ls": "command",
    ".local/bin/git": "command",
    ".cargo/bin/cargo": "command",
    ".local/share/bin/x": "",
    "p/.nano-staged.json": "git",
    "p/commitlint.config.mjs": "git",
    "p/.letta/settings.local.json": "agent",
    "p/.grok/hooks/x.json": "agent",
    ".grok/trusted_folders.toml": "agent",
    "p/.devin/hooks.v1.json": "agent",
    "p/.tabnine/hooks/before-tool.sh": "agent",
    "p/.grok/notes.md": "",
    ".kimi/config.toml": "agent",
    ".local/share/nushell/vendor/autoload/x.nu": "shell",
    ".local/share/powershell/Modules/x/x.psm1": "shell",
    ".goenv/plugins/x": "shell",
    ".pixi/envs/x/bin/y": "tool",
    ".virtualenvs/postactivate": "tool",
    ".gem/ruby/3.3.0/plugins/x_plugin.rb": "tool",
    ".config/pkcs11/modules/x.module": "login",
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
"""The mark of a file written at each path; empty for ordinary work."""


def test_what_is_written_is_marked_by_its_path(scribe: Scribe) -> None:
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
    "/home/somebody/.local/bin/git",
    "/usr/local/sbin/x",
    "/etc/sysusers.d/x.conf",
    "/run/udev/rules.d/x.rules",
    "/usr/local/lib/tmpfiles.d/x.conf",
    "/etc/doas.d/x.conf",
    "/etc/ld-musl-x86_64.path",
    "/etc/OpenCL/vendors/x.icd",
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


def test_start_files_of_the_system_and_of_other_users_are_code() -> None:
    paths = [RelPath(path[1:].encode()) for path in (*SYSTEM, *ORDINARY)]
    patterns = CodeFileTable(Base(b"/"), b"/nowhere/p", b"/nowhere", (), None).fixed(paths, ())
    assert [path for path in SYSTEM if not patterns.fits(path[1:].encode())] == []
    assert [path for path in ORDINARY if patterns.fits(path[1:].encode())] == []


HOMES = [
    (b"/home/me", b"home/me/notes", False),
    (b"/root", b"root/notes", False),
    (b"/srv/me", b"srv/me/notes", False),
    (b"/home/me", b"home/me", True),
    (b"/home/me", b"home/you/.bashrc", True),
    (b"/home/me", b"HOME/you/.bashrc", True),
    (b"/home/me", b"root/.bashrc", True),
    (b"/home/me", b"home", True),
    (b"/home", b"home/you/.bashrc", True),
    (b"/home/you/me", b"home/you/me/.bashrc", True),
]


@pytest.mark.parametrize(("home", "changed", "may_be_others"), HOMES)
def test_other_homes_count_where_a_change_may_be_in_one(home: bytes, changed: bytes, may_be_others: bool) -> None:
    table = CodeFileTable(Base(b"/"), b"/nowhere/p", home, (), None)
    assert table.fixed([RelPath(changed)], ()).fits(b"home/another/.bashrc") is may_be_others


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
def test_a_hook_is_marked_in_every_way_in_which_it_can_come(scribe: Scribe, way: Callable[[Scribe], None]) -> None:
    assert marks(scribe) == {}
    way(scribe)
    assert "git" in marks(scribe).values()


def test_a_table_directory_that_others_may_write_to_counts(scribe: Scribe) -> None:
    scribe.chmod(b"home/u/.ssh", 0o777)
    assert marks(scribe) == {".ssh": "ssh"}


def test_a_hook_that_is_removed_or_only_touched_is_not_marked(scribe: Scribe) -> None:
    scribe.utime(HOOK, 5)
    scribe.remove(b"home/u/.bashrc")
    assert marks(scribe) == {}
    scribe.remove(HOOK)
    assert marks(scribe) == {}


def test_what_a_link_of_base_leads_to_is_what_counts(scribe: Scribe) -> None:
    scribe.write(b"home/u/dotfiles/bashrc", b"evil\n")
    assert marks(scribe) == {"dotfiles/bashrc": "shell"}


def test_what_links_of_base_in_a_directory_of_the_table_lead_to_is_marked(scribe: Scribe) -> None:
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


def test_programs_that_gits_settings_name_count(scribe: Scribe) -> None:
    base = Path(os.fsdecode(scribe.base.root)) / "home/u"
    (base / "p/.git/config").write_text(
        '[filter "x"]\nclean = ./clean.sh\nsmudge = python3 tools/smudge.py %f\n'
        '[diff "y"]\ntextconv = ~/show.sh\n[core]\nfsmonitor = .hooks/fsm\n'
        '[alias]\nst = status\ndo = !f() { sh ./do.sh; }; f\nodd = "!it\'s/odd"\n'
        '[safe]\ndirectory = src\n[remote "origin"]\nurl = ../other\nuploadpack = ../up/pack\n'
    )
    (base / ".gitconfig").write_text("[core]\nhooksPath = .githooks\n[include]\npath = dotfiles/git\n")
    (base / "dotfiles").mkdir(exist_ok=True)
    (base / "dotfiles/git").write_text("[include]\npath = more\n[init]\ntemplateDir = ~/template\n")
    (base / "dotfiles/more").write_text("[commit]\ntemplate = ~/message\n[gpg]\nprogram = ~/gpg.sh\n")
    (base / "p/src").mkdir(exist_ok=True)
    marked = ("clean.sh", "tools/smudge.py", ".hooks/fsm", "do.sh", "it's/odd", ".githooks/pre-push")
    names = {f"p/{name}" for name in marked}
    names |= {"show.sh", "up/pack", "dotfiles/git", "dotfiles/more", "template/hooks/post-checkout", "gpg.sh"}
    for name in (*names, "p/tools/other.py", "p/src/x", "p/status", "other", "message", "template/x"):
        write(scribe, name)
    assert marks(scribe) == dict.fromkeys(names, "git")


def test_programs_count_that_a_shell_in_gits_settings_names(scribe: Scribe) -> None:
    base = Path(os.fsdecode(scribe.base.root)) / "home/u"
    (base / "p/.git/config").write_text(
        '[filter "x"]\nclean = sh -c \'cd sub && ./in.sh "$1"\' -- %f\n'
        'smudge = \\"$(git rev-parse --show-toplevel)/top.sh\\" %f\nprocess = `pwd`/pwd.py --log=x.log\n'
        '[diff "y"]\ntextconv = env LIB=lib/y.so $HOME/home.sh\n[merge "z"]\ndriver = ${PWD}/z.sh %O\n'
        "[gpg]\nprogram = $(dirname $(git rev-parse --git-dir))/gpg.sh\n"
    )
    names = {f"p/{name}" for name in ("in.sh", "top.sh", "pwd.py", "x.log", "lib/y.so", "z.sh", "gpg.sh")} | {"home.sh"}
    for name in (*names, "p/git", "p/sub/x", "p/cd"):
        write(scribe, name)
    assert marks(scribe) == dict.fromkeys(names, "git")


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


def test_a_hook_with_another_name_in_base_counts_by_that_name(scribe: Scribe) -> None:
    base = Path(os.fsdecode(scribe.base.root)) / "home/u/p"
    (base / "src/hook").hardlink_to(base / ".git/hooks/pre-commit")
    (base / "src/tool").write_text("x")
    (base / "src/tool").chmod(0o755)
    (base.parent / "bin/tool").hardlink_to(base / "src/tool")
    scribe.write(b"home/u/p/src/hook", b"evil\n")
    scribe.write(b"home/u/p/src/tool", b"evil\n")
    found = marks(scribe, search=("home/u/bin",))
    assert found == {"p/.git/hooks/pre-commit": "git", "bin/tool": "command"}  # a commit parts no names of a file


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
    assert all(pattern.startswith(("/", "~/", "**/")) for pattern in patterns)
    for row in (*GIT_ROWS, *rows()):
        below = parse_pattern(row.pattern, b"/", b"/~")  # of which each name is as it is written
        assert row.names == [*([b""] if row.pattern.startswith("/") else []), *below]


def test_no_directory_is_looked_for_that_the_one_above_does_not_list(
    scribe: Scribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table of a thousand lines names many: a status would take a tenth longer."""
    looked_at: list[bytes] = []
    really_read = os.readlink

    def reading(path: bytes) -> bytes:
        looked_at.append(path)
        return really_read(path)

    home = os.path.join(scribe.base.root, b"home/u")
    os.makedirs(home + b"/.pyenv")
    os.symlink(b"../p/version", home + b"/.pyenv/version")
    monkeypatch.setattr(os, "readlink", reading)
    links = Links(scribe.base, home + b"/p", home, None)
    places = dict(links.fixed(built_in(home, "").fixed))
    below = {path.removeprefix(home + b"/") for path in looked_at if path.startswith(home + b"/")}
    assert b".pyenv/version" in below
    assert parse_pattern(os.fsdecode(home + b"/p/version"), b"/", b"/") in places
    assert not [path for path in below if path.startswith((b".rbenv", b".config/"))]


def test_what_a_link_among_the_commands_leads_to_is_a_command(scribe: Scribe) -> None:
    home = Path(os.fsdecode(scribe.base.root)) / "home/u"
    (home / "bin/tool").symlink_to("../dotfiles/tool")
    write(scribe, "dotfiles/tool", mode=0o755)
    write(scribe, "dotfiles/other", mode=0o755)
    assert marks(scribe, search=("home/u/bin",)) == {"dotfiles/tool": "command"}


@pytest.mark.parametrize("name", [b"plain.py", b"README.md", b"main.c", b"x"])
def test_of_most_names_is_seen_at_a_glance_that_they_are_no_code(name: bytes) -> None:
    """Else each file of a large commit is compared with all patterns, which takes five times as
    long.
    """
    table = CodeFileTable(Base(b"/"), b"/nowhere/p", b"/nowhere", (), None)
    for patterns in (table.anywhere, table.fixed((), ())):
        assert not patterns.first_names.may_hold(name)
    assert table.anywhere.first_names.may_hold(b".envrc.local")


def test_host_code_is_marked_whatever_the_case_of_its_name(scribe: Scribe) -> None:
    """FAT, exFAT, NTFS and SMB find a file by its name in any case."""
    names = {
        "p/.ENVRC": "directory",
        "p/.VSCode/Tasks.JSON": "editor",
        "P/.mise.Toml": "directory",
        ".BashRC": "shell",
        ".Config/Code/user/x": "editor",
        "p/.Git/HOOKS/pre-commit": "git",
        "p/d/.GIT": "git",
        "p/.git/Config": "git",
        "Bin/tool": "command",
    }
    for name in (*(f"p/bare/{one}" for one in ("head", "Objects/x", "REFS/x", "Refs/y")), "p/bare/CONFIG"):
        write(scribe, name, EVIL)
    for name in names:
        write(scribe, name, EVIL, 0o755)
    assert marks(scribe, search=("home/u/bin",)) == {**names, "p/bare/CONFIG": "git"}


@core_in_python
def test_a_directory_that_is_exchanged_for_a_link_while_it_is_looked_into_has_to_be_named(
    scribe: Scribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the link nothing of that kind lies."""
    home = Path(os.fsdecode(scribe.base.path(b"home/u")))
    (home / "p/new").mkdir()
    (home / "p/new/tasks.json").write_bytes(b"{}")
    (home / "p/empty").mkdir()
    scribe.rename(b"home/u/p/new", b"home/u/p/.vscode")
    really = MarkFinder._in_renamed

    def exchanged(*arguments: Any) -> set[Mark]:
        (home / "p/new").rename(home / "p/aside")
        (home / "p/new").symlink_to("empty")
        try:
            return really(*arguments)
        finally:
            (home / "p/new").unlink()
            (home / "p/aside").rename(home / "p/new")

    monkeypatch.setattr(MarkFinder, "_in_renamed", exchanged)
    assert "p/.vscode" in marks(scribe)
