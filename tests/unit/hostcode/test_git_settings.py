"""Which changes of git's settings are harmless."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.unit.hostcode.test_git_config import CLONED
from yolofs.hostcode.git_config import ConfigLine, parse_config
from yolofs.hostcode.git_settings import is_harmless_change

HARMLESS = [
    '[lfs "https://example.org/x.git/info/lfs"]\naccess = basic\nlocksverify = false\n',
    '[remote "origin"]\nglab-resolved = base\n',
    '[remote "up"]\nurl = git@example.org:x/y.git\nfetch = +refs/heads/*:refs/remotes/up/*\n',
    '[remote "up"]\nurl = ssh://git@example.org:22/x\n[remote "o2"]\nurl = /srv/x.git\n',
    '[remote "up"]\nurl = ../x\ntagOpt = --no-tags\n',
    '[branch "topic/x"]\nremote = origin\nmerge = refs/heads/topic/x\nrebase = true\n',
    '[branch "main"]\nmerge = refs/heads/other\n',
    '[branch "x"]\nremote = .\nmerge = refs/heads/main\ndescription = a\\nb\n',
    "[user]\nname = A B\nemail = a@b\n",
    '[submodule "libs/x"]\nurl = https://example.org/x\nactive = true\n',
    "[extensions]\nworktreeConfig = true\n[core]\nsparseCheckout = true\n",
    "[pull]\nrebase = false\n[push]\nautoSetupRemote\n",
    "[core]\nfsmonitor = true\n",
    "[index]\nsparse = true\n",
    "[commit]\ngpgsign = false\n[tag]\ngpgSign = true\n",
    "[alias]\nst = status\nlg = log --oneline --graph --all\nci = commit\n",
    "[advice]\ndetachedHead = false\nskippedCherryPicks = false\n",
    "[user]\nsigningKey = 0123456789ABCDEF\nuseConfigOnly = true\n",
    "[user]\nsigningKey = a.b@example.org\n",
    "[rebase]\nautoSquash = true\n[branch]\nautoSetupMerge = always\nautoSetupRebase = never\n",
    "[i18n]\ncommitEncoding = ISO-8859-1\nlogOutputEncoding = UTF-8\n",
    "[index]\nversion = 4\n[feature]\nmanyFiles = true\n[core]\nsharedRepository = group\n",
    "[pager]\nlog = false\n[receive]\ndenyCurrentBranch = updateInstead\n",
    "[receive]\ndenyNonFastforwards = true\n",  # git init --shared
    "[core]\nFSCache = true\nmultiPackIndex = true\n[log]\nexcludeDecoration = refs/prefetch/*\n",  # scalar clone
    '[credential "https://dev.azure.com"]\nuseHttpPath = true\n[credential]\nvalidate = false\n',
    "[blame]\nignoreRevsFile = .git-blame-ignore-revs\n[diff]\nalgorithm = histogram\n[color]\nstatus = auto\n",
    '[branch "fork"]\nremote = https://example.org/fork\npushRemote = https://example.org/fork\n',  # gh pr checkout
    '[remote "origin"]\nfollowRemoteHEAD = warn-if-not-main\n',
    "",
    "# a remark\n",
]
HARMFUL = [
    "[gc]\nrecentObjectsHook = x\n",
    "[pack]\npackObjectsHook = x\n",
    "[diff]\nexternal = x\norderFile = x\n",
    '[branch "fork"]\nremote = ext::x\n',
    '[branch "fork"]\nremote = ext://x\n',
    "[credential]\nhelper = x\n",
    "[core]\nfsmonitor = ./x\n",
    "[core] fsmonitor = ./x\n",
    "[CORE]\nFsMonitor=./x\n",
    "[core]\nhooksPath = .githooks\n",
    "[core]\nsshCommand = x\n",
    "[core]\npager = x\n",
    "[core]\neditor = x\n",
    "[core]\naskPass = x\n",
    "[core]\ngitProxy = x\n",
    "[core]\nworktree = /home/u\n",
    "[core]\nattributesFile = x\n",
    "[core]\nalternateRefsCommand = x\n",
    "[alias]\nst = !x\n",
    "[alias]\nx = -c core.pager=x log\n",
    "[alias]\nx = log --output=x\n",
    "[alias]\nx = status -c core.fsmonitor=x\n",
    "[alias]\nx = push https://example.net\n",
    "[alias]\nx = checkout -f\n",
    "[alias]\nst\n",
    '[alias "st"]\ncommand = !x\n',
    "[gpg]\nformat = ssh\n",
    "[user]\nsigningKey = ~/.ssh/id\n",
    "[user]\nsigningKey = --x\n",
    "[core]\nsharedRepository = all\n",
    "[receive]\ncertNonceSeed = x\n",
    '[filter "lfs"]\nclean = x\n',
    '[lfs "https://example.org/x.git/info/lfs"]\naccess = negotiate\n',
    '[lfs "https://example.org/x.git/info/lfs"]\nstandalonetransferagent = x\n',
    '[diff "x"]\ncommand = x\n',
    '[diff "x"]\ntextconv = x\n',
    "[diff]\nexternal = x\n",
    '[merge "x"]\ndriver = x\n',
    '[mergetool "x"]\ncmd = x\n',
    "[credential]\nhelper = !x\n",
    '[credential "https://example.org"]\nhelper = x\n',
    "[include]\npath = ../x\n",
    '[includeIf "gitdir:/"]\npath = ../x\n',
    '[url "ext::sh -c x"]\ninsteadOf = https://\n',
    "[protocol]\nallow = always\n",
    '[protocol "ext"]\nallow = always\n',
    "[gpg]\nprogram = x\n",
    '[gpg "ssh"]\ndefaultKeyCommand = x\n',
    "[uploadpack]\npackObjectsHook = x\n",
    "[http]\nproxy = http://x\n",
    "[http]\nsslVerify = false\n",
    "[sequence]\neditor = x\n",
    "[pager]\nlog = x\n",
    "[interactive]\ndiffFilter = x\n",
    "[sendemail]\nsendmailCmd = x\n",
    '[trailer "x"]\ncommand = x\n',
    '[man "x"]\ncmd = x\n',
    "[receive]\nprocReceiveRefs = x\n",
    "[init]\ntemplateDir = x\n",
    "[commit]\ntemplate = x\n",
    "[extensions]\nrefStorage = files:///x\n",
    '[remote "up"]\nuploadpack = x\n',
    '[remote "up"]\nreceivepack = x\n',
    '[remote "up"]\nvcs = x\n',
    '[remote "up"]\nproxy = x\n',
    '[remote "up"]\nurl = ext::sh -c x\n',
    '[remote "up"]\nurl = foo::bar\n',
    '[remote "up"]\nurl = ssh://-oProxyCommand=x/y\n',
    '[remote "up"]\nurl = -oProxyCommand=x:y\n',
    '[remote "up"]\nurl = git@-oProxyCommand=x:y\n',
    '[remote "up"]\nurl = foo://bar\n',
    '[remote "up"]\nurl\n[x]\n',
    '[remote "ext::x"]\nfetch = refs/heads/*:refs/remotes/x/*\n',
    '[remote "up"]\nfetch = +refs/heads/*:refs/heads/*\n',
    '[branch "x"]\nremote = ext::sh -c x\n',
    '[branch "x"]\nremote = ../x\n',
    '[branch "x"]\nmergeOptions = -s x\n',
    '[submodule "x"]\nupdate = !x\n',
    '[submodule "x"]\nurl = ext::x\n',
    "[a]\nunknown = 1\n",
    "broken\n",
    # what goes by a name that is known goes elsewhere:
    '[remote "origin"]\nurl = https://example.net/x\n',
    '[remote "origin"]\npushurl = https://example.net/x\n',
    '[branch "main"]\nremote = up\n',
    '[branch "main"]\npushRemote = up\n',
    "[remote]\npushDefault = up\n",
]


@pytest.mark.parametrize("more", HARMLESS)
def test_what_gits_own_commands_write_is_harmless(more: str) -> None:
    assert is_harmless_change(parse_config(CLONED), parse_config(CLONED + more.encode()))
    assert is_harmless_change(None, parse_config(CLONED + more.encode()))


@pytest.mark.parametrize("more", HARMFUL)
def test_what_gits_own_commands_do_not_write_is_harmful(more: str) -> None:
    assert not is_harmless_change(parse_config(CLONED), parse_config(CLONED + more.encode()))


@pytest.mark.parametrize("more", [text for text in HARMFUL[:-5] if "fetch = +refs/heads/*:refs/heads" not in text])
def test_other_settings_are_harmful_in_a_new_repository_too(more: str) -> None:
    assert not is_harmless_change(None, parse_config(CLONED + more.encode()))


def test_a_mirror_that_is_new_is_harmless() -> None:
    mirror = b'[remote "origin"]\nurl = https://example.org/x\nfetch = +refs/*:refs/*\nmirror = true\n'
    assert is_harmless_change(None, parse_config(mirror))
    assert not is_harmless_change(parse_config(CLONED), parse_config(CLONED + mirror.replace(b"origin", b"x")))


@pytest.mark.parametrize(
    ("before", "after", "harmless"),
    [
        ("[core]\npager = x\n", "[core]\npager = x\n[user]\nname = y\n", True),
        ("[core]\npager = x\npager = y\n", "[core]\npager = y\npager = x\n", False),
        ("[core]\nhooksPath = /dev/null\n", "", False),
        ("[include]\npath = x\n[core]\npager = y\n", "[core]\npager = y\n[include]\npath = x\n", False),
        ('[remote "a"]\nurl = https://x\n', "", True),
        ('[remote "a"]\nurl = https://x\n', '[remote "b"]\nurl = https://x\n', True),
        ('[submodule "a"]\nurl = https://x\n', '[submodule "a"]\nurl = https://y\n', False),
        ("[core]\npager = x\n", "[core]\npager = y\n", False),
        ("nonsense", "[user]\nname = x\n", True),
    ],
)
def test_a_harmless_change_of_settings_leaves_what_was_there(before: str, after: str, harmless: bool) -> None:
    assert is_harmless_change(parse_config(before.encode()), parse_config(after.encode())) is harmless


def test_all_that_git_itself_writes_is_harmless(tmp_path: Path) -> None:
    """The real commands, of whatever version of git is here."""

    def git(*words: str) -> None:
        environment = {**os.environ, "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1", "GIT_ALLOW_PROTOCOL": "file"}
        options = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
        subprocess.run(["git", *options, *words], check=True, capture_output=True, env=environment, cwd=tmp_path)

    def entries(path: str) -> list[ConfigLine] | None:
        return parse_config((tmp_path / path).read_bytes())

    git("init", "origin")
    git("-C", "origin", "commit", "--allow-empty", "-m", "x")
    git("clone", "origin", "clone")
    assert is_harmless_change(None, entries("clone/.git/config"))
    before = entries("clone/.git/config")
    git("-C", "clone", "remote", "add", "up", "../origin")
    git("-C", "clone", "fetch", "up")
    git("-C", "clone", "checkout", "-b", "topic", "up/main")
    git("-C", "clone", "branch", "-u", "origin/main")
    git("-C", "clone", "config", "user.name", "somebody")
    git("-C", "clone", "worktree", "add", "../tree")
    git("-C", "clone", "submodule", "add", str(tmp_path / "origin"), "sub")
    assert is_harmless_change(before, entries("clone/.git/config"))
    for options in (["--bare"], ["--mirror"], ["--depth=1", "--no-single-branch"], ["--recurse-submodules"]):
        git("clone", *options, "origin", f"other{options[0]}")
        name = f"other{options[0]}"
        path = f"{name}/config" if (tmp_path / name / "config").exists() else f"{name}/.git/config"
        assert is_harmless_change(None, entries(path)), options
