"""Settings that come with a tree: what opens anything waits until the user has agreed to it.

As root, and (by ``make test-elsewhere``) as an ordinary user.
"""

from __future__ import annotations

import json
import os
import re
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.security.trust.clones import EXIT, SECRET, reads, settings, waiting
from tests.support.fault_points import points
from tests.support.program import Program, can_read, connected, replace_text, wait_until
from tests.support.required import do_without
from tests.support.transports import IS_DIRECT

pytestmark = pytest.mark.mount

NOBODY = 0xFFFFFFFF


# ---- the try that this began with


def test_a_cloned_file_that_opens_keys_and_variables_is_not_obeyed_unseen(clone: Program, home: Path) -> None:
    settings(clone, '[run]\nkeep_env = ["*"]\n[rules]\n"~/.ssh" = "allow"\n')
    done = clone("run", "sh", "-c", f"env; cat {home}/.ssh/key; true", MY_TOKEN="the token")
    assert SECRET not in done.out
    assert "the token" not in done.out
    lines = [line for line in done.err.splitlines() if "yolofs trust" in line]
    assert lines == [
        "warning: 2 lines of .yolofs.toml are not in force until you agree to them: yolofs trust",
    ]
    clone.trust()
    done = clone("run", "sh", "-c", f"env; cat {home}/.ssh/key", MY_TOKEN="the token")
    assert SECRET in done.out
    assert "MY_TOKEN=the token" in done.out
    assert "yolofs trust" not in done.err


SPELLINGS = [
    '"~/.ssh" = "allow"',
    '"~/./.ssh" = "read-only"',
    '"~//.ssh/" = "ask"',
    '"HOME/.ssh" = "allow"',
    '"file://HOME/%2Essh" = "allow"',
    '"~/.ssh/key" = "write-ask"',
    '"~/.ssh" = "deny"',
    '"~/.ssh/**" = "allow"',
    '"~/**/key" = "allow"',
    '"**/key" = "read-only"',
    '"~/**/.ssh/**" = "allow"',
    '"~" = "allow"\n"~/.ssh" = "read-only"',
    '"/" = "allow"\n"~/.ssh" = "allow"',
    '"\\u007e/.s\\u0073h" = "allow"',
    "'~/.ssh' = 'allow'",
]


@pytest.mark.parametrize("rule", points(SPELLINGS, "spellings", some=4))
def test_however_a_key_is_spelled_what_it_opens_waits(clone: Program, home: Path, rule: str) -> None:
    settings(clone, f"[rules]\n{rule}\n".replace("HOME", str(home)))
    with clone.mounted("--root", home):
        assert os.path.lexists(clone.daemon["mountpoint"] + "/src/clone/a.txt")
        shown = clone.daemon["mountpoint"] + "/.ssh"
        assert not os.path.lexists(shown)
        assert not os.path.lexists(f"{shown}/key")
    assert waiting(clone)


TABLES = [
    'rules."~/.ssh" = "allow"',
    'rules = { "~/.ssh" = "allow", "a.txt" = "deny" }',
    '[ "rules" ]\n"~/.ssh" = """allow"""',
    'run.keep_env = ["*"]',
    'run = { keep_env = [ "*" ] }',
    '["run"]\n"keep\\u005fenv" = ["*"]',
]


@pytest.mark.parametrize("text", points(TABLES, "tables", some=3))
def test_however_a_table_is_written_the_line_waits(clone: Program, home: Path, text: str) -> None:
    settings(clone, text + "\n")
    done = clone("run", "sh", "-c", f"env; cat {home}/.ssh/key; true", MY_TOKEN="the token")
    assert SECRET not in done.out
    assert "the token" not in done.out
    assert len(waiting(clone)) == 1


def test_links_in_the_tree_lead_no_rule_out_of_it(clone: Program, home: Path) -> None:
    (clone.project / "link").symlink_to(home / ".ssh")
    (clone.project / "up").symlink_to("..")
    for key in ("up/../.ssh", "../../.ssh", "sub/../../x", "~/src/../.ssh", "/tmp/../root"):
        settings(clone, f'[rules]\n"{key}" = "allow"\n')
        assert re.search(r'expected a path without "\.\."|climbs out of the project', clone.refused("mount", code=3))
    settings(clone, '[rules]\n"link" = "allow"\n"up" = "allow"\n')
    assert reads(clone, clone.project / "link/key", home / ".ssh/key") == ""


def test_an_agreement_for_a_link_waits_again_when_that_leads_elsewhere(clone: Program) -> None:
    for name in ("open", "closed"):
        (clone.project / name).mkdir()
        (clone.project / name / "file").write_text(name)
    (clone.project / "link").symlink_to("open")
    settings(clone, 'preset = "none"\n[rules]\n"link" = "read-only"\n"closed" = "deny"\n')
    clone.trust()
    assert waiting(clone) == []
    (clone.project / "link").unlink()
    (clone.project / "link").symlink_to("closed")
    assert waiting(clone) == ['"link" = "read-only"']


def test_what_the_built_in_rules_guard_in_the_project_waits(clone: Program) -> None:
    (clone.project / "sub").mkdir()
    guarded = [clone.project / name for name in (".env", "sub/server.key")]
    for path in guarded:
        path.write_text(SECRET)
    settings(clone, '[rules]\n"**/.env" = "allow"\n"sub/**" = "allow"\n".yolofs.toml" = "allow"\n')
    assert reads(clone, *guarded) == ""
    clone("run", "sh", "-c", "echo >> .yolofs.toml", code=2)
    assert waiting(clone) == ['"**/.env" = "allow"', '"sub/**" = "allow"', '".yolofs.toml" = "allow"']
    clone.trust()
    assert reads(clone, *guarded) == SECRET * 2


def test_a_users_own_rules_are_not_loosened_either(clone: Program, home: Path) -> None:
    (home / ".config/yolofs").mkdir(parents=True)
    (home / ".config/yolofs/config.toml").write_text('[rules]\n"~/notes" = "deny"\n"~/open" = "allow"\n')
    clone("rule", "deny", "vendor")
    for path in (home / "notes/n", home / "open/o", clone.project / "vendor/v"):
        path.parent.mkdir()
        path.write_text(SECRET)
    settings(clone, '[rules]\n"~/notes/n" = "allow"\n"~/open" = "allow"\n"vendor/v" = "read-only"\n')
    assert reads(clone, home / "notes/n", clone.project / "vendor/v") == ""
    assert reads(clone, home / "open/o") == SECRET
    assert waiting(clone) == ['"~/notes/n" = "allow"', '"vendor/v" = "read-only"']


# ---- what tightens


def test_a_line_that_only_tightens_holds_at_once(clone: Program, home: Path) -> None:
    (home / "open").mkdir()
    settings(
        clone,
        'scratch = []\nask_timeout = 1\n[run]\nnetwork = "none"\nnative_binds = false\n'
        'hide_env = ["MINE", "*"]\n[mount]\nallow_other = false\n'
        '[rules]\n"a.txt" = "deny"\n"vendor" = "hidden"\n"docs" = "read-only"\n"x" = "ask"\n"y" = "write-ask"\n'
        '"**/*.sqlite" = "deny"\n"**/.envrc" = "hidden"\n"docs/in/it" = "deny"\n"src/**/*.c" = "read-only"\n',
    )
    (clone.project / "x.sqlite").write_text(SECRET)
    assert waiting(clone) == []
    assert reads(clone, clone.project / "a.txt", clone.project / "x.sqlite") == ""
    assert clone("run", "sh", "-c", "env; true", MINE="x", OTHER="y").out.count("=") < 12
    refused = clone("run", "sh", "-c", "mkdir -p docs; echo > docs/new", code=2)
    assert "docs" in refused.err


def test_a_rule_that_opens_within_what_the_file_itself_closed_needs_no_agreement(clone: Program) -> None:
    (clone.project / "dir").mkdir()
    (clone.project / "dir/open").write_text("open\n")
    settings(clone, '[rules]\n"dir" = "deny"\n"dir/open" = "allow"\n')
    assert waiting(clone) == []
    assert reads(clone, clone.project / "dir/open") == "open\n"


def test_of_a_line_that_waits_what_tightens_holds_meanwhile(clone: Program) -> None:
    (clone.project / "x.lock").write_text("x\n")
    settings(clone, 'scratch = ["build"]\n[rules]\n"**/*.lock" = "read-only"\n"docs/**" = "read-only"\n')
    assert waiting(clone) == ['scratch = ["build"]', '"**/*.lock" = "read-only"', '"docs/**" = "read-only"']
    clone("run", "sh", "-c", "echo >> x.lock", code=2)
    clone("run", "sh", "-c", "mkdir docs", code=1)


# ---- the other keys


def test_without_agreement_the_view_is_that_of_the_machine(clone: Program) -> None:
    settings(clone, 'root = "."\n')
    done = clone("mount")
    try:
        assert (Path(done.out.strip()) / "etc/passwd").exists()
        assert "1 line of .yolofs.toml is not in force until you agree to it: yolofs trust" in done.err
        document = clone("trust", "--json").json
        said = clone("trust", "--digest", document["digest"]).err
        assert "for root: yolofs unmount, then yolofs mount" in said
    finally:
        clone("unmount")
    done = clone("mount")
    try:
        assert (Path(done.out.strip()) / "a.txt").exists()
    finally:
        clone("unmount")


def test_fewer_names_in_hide_env_wait_and_more_hold(clone: Program) -> None:
    settings(clone, '[run]\nhide_env = ["MINE", "*_TOKEN"]\n')
    shown = clone("run", "env", MINE="m", MY_SECRET="s", MY_TOKEN="t").out
    assert not re.search("MINE=|MY_SECRET=|MY_TOKEN=", shown)
    clone.trust()
    shown = clone("run", "env", MINE="m", MY_SECRET="s", MY_TOKEN="t").out
    assert not re.search("MINE=|MY_TOKEN=", shown)
    assert "MY_SECRET=s" in shown


def test_an_answer_that_nobody_gave_stays_no(clone: Program, home: Path) -> None:
    (home / "notes").write_text(SECRET)
    settings(clone, 'ask_default = "allow"\nask_timeout = 0\n')
    assert reads(clone, home / "notes") == ""
    clone.trust()
    assert reads(clone, home / "notes") == SECRET
    settings(clone, 'ask_default = "allow"\nask_timeout = 0.1\n')
    assert waiting(clone) == ['ask_default = "allow"']


def test_the_built_in_rules_are_not_switched_off_by_a_tree(clone: Program, home: Path) -> None:
    settings(clone, 'preset = "none"\nask_default = "allow"\nask_timeout = 0\n')
    assert reads(clone, home / ".ssh/key") == ""
    clone.trust()
    assert reads(clone, home / ".ssh/key") == SECRET


def test_a_tree_does_not_keep_changes_out_of_sight(clone: Program) -> None:
    (clone.project / "build").mkdir()
    settings(clone, 'scratch = ["build", "."]\n[diff]\nmax_text_bytes = 0\n')
    clone("run", "sh", "-c", "echo new > build/made; echo more >> a.txt")
    assert "A  build/made\n" in clone("status").out
    assert "+more" in clone("diff").out
    clone.trust()
    assert "A  build/made\n" not in clone("status").out
    assert "+more" not in clone("diff").out


# ---- under a mount


def test_a_running_mount_takes_up_what_is_agreed_to_at_once_and_nothing_else(clone: Program, home: Path) -> None:
    def git(*words: str) -> None:
        command = ["git", "-c", "user.name=n", "-c", "user.email=e@x", "-C", str(clone.project), *words]
        subprocess.run(command, check=True, capture_output=True)

    settings(clone, "# nothing\n")
    git("init", "-b", "main")
    git("add", ".yolofs.toml")
    git("commit", "-m", "a")
    git("checkout", "-b", "evil")
    settings(clone, '[rules]\n"~/.ssh" = "allow"\n"a.txt" = "deny"\n')
    git("commit", "-a", "-m", "b")
    git("checkout", "main")
    with clone.mounted("--root", "/") as view:
        key, own = Path(f"{view}{home}/.ssh/key"), Path(f"{view}{clone.project}/a.txt")
        assert own.read_text() == "a\n"
        git("checkout", "evil")
        wait_until(lambda: not can_read(own), "what tightens is in force")
        assert not key.exists()
        assert "1 line of .yolofs.toml is not in force" in clone("status").err
        clone.trust()
        assert key.read_text() == SECRET
        git("checkout", "main")
        wait_until(lambda: can_read(own), "the line that tightened is gone")
        assert not key.exists()


def test_a_line_that_was_agreed_to_stays_in_force_while_more_lines_come(clone: Program, home: Path) -> None:
    (home / "notes").write_text(SECRET)
    settings(clone, '[rules]\n"~/.ssh" = "read-only"\n')
    clone.trust()
    with clone.mounted("--root", "/") as view:
        key, notes, own = (
            Path(f"{view}{path}") for path in (home / ".ssh/key", home / "notes", clone.project / "a.txt")
        )
        assert key.read_text() == SECRET
        settings(clone, '[rules]\n"~/.ssh" = "read-only"\n"~/notes" = "hidden"\n"a.txt" = "deny"\n"/" = "read-only"\n')
        wait_until(lambda: not can_read(own), "the file is taken up")
        assert key.read_text() == SECRET
        assert not notes.exists()
        assert waiting(clone) == ['"/" = "read-only"']


def test_a_commit_that_changes_the_file_has_its_lines_wait(clone: Program, home: Path) -> None:
    clone("rule", "allow", ".yolofs.toml")
    with clone.mounted("--root", "/") as view:
        file = Path(f"{view}{clone.project}/.yolofs.toml")
        file.write_text('[rules]\n"~/.ssh" = "allow"\n')
        key = Path(f"{view}{home}/.ssh/key")
        assert waiting(clone) == []
        clone("commit", "--yes", ".yolofs.toml")  # it is to be named: what it says is what the host would trust
        assert waiting(clone) == ['"~/.ssh" = "allow"']
        assert not key.exists()


# ---- from inside


def test_trust_cannot_be_given_from_inside_a_view(clone: Program, home: Path) -> None:
    settings(clone, '[rules]\n"~/.ssh" = "allow"\n')
    digest = clone("trust", "--json").json["digest"]
    words = [sys.executable, "-P", "-m", "yolofs.cli.main", "trust", "--digest", digest]
    done = clone("run", *words, code=2)
    assert "yolofs trust is for the user, outside of the sandbox" in done.err
    done = clone("run", "env", "-u", "YOLOFS_SOCKET", *words, code=EXIT)
    assert "not agreed to from inside a view" in done.err
    done = clone("run", "env", "-u", "YOLOFS_SOCKET", *words[:4], "-C", "/", *words[4:], code=EXIT)
    assert "not agreed to from inside a view" in done.err
    mountpoint = Path(clone.daemon["mountpoint"])
    inside = Path(f"{mountpoint}{clone.project}")
    assert "not agreed to from inside a view" in clone("trust", "--digest", digest, cwd=inside, code=EXIT).err
    done = clone("-C", clone.project, "trust", "--digest", digest, cwd=inside, code=EXIT)
    assert "not agreed to from inside a view" in done.err
    assert waiting(clone) == ['"~/.ssh" = "allow"']


def test_the_restricted_socket_has_no_way_to_trust(clone: Program) -> None:
    settings(clone, '[run]\nkeep_env = ["A"]\n')
    script = (
        "import os, socket; s = socket.socket(socket.AF_UNIX); s.connect(os.environ['YOLOFS_SOCKET']);"
        's.sendall(b\'{"jsonrpc":"2.0","id":1,"method":"reload_rules"}\\n\'); print(s.recv(9999).decode())'
    )
    assert json.loads(clone("run", sys.executable, "-c", script).out)["error"]["code"] == -32601


# ---- what is said


def test_every_command_that_goes_by_the_file_says_what_waits(clone: Program) -> None:
    settings(clone, '[run]\nkeep_env = ["A"]\n[rules]\n"~/.ssh" = "allow"\n')
    line = "2 lines of .yolofs.toml are not in force until you agree to them"
    for words in (("status",), ("run", "true"), ("mount",), ("rule", "list"), ("rule", "explain", "a.txt"), ("init",)):
        said = clone(*words).err
        assert said.count(line) == 1, words
        assert "yolofs trust" in said
    findings = {one["check"]: one for one in clone("doctor", "--json").json["findings"]}
    assert (findings["trust"]["level"], findings["trust"]["message"], findings["trust"]["advice"]) == (
        "warn",
        line,
        "yolofs trust",
    )
    document = clone("status", "--json").json["waiting"]
    assert [(one["line"], one["key"], one["text"]) for one in document] == [
        (2, ["run", "keep_env"], 'run.keep_env = ["A"]'),
        (4, ["rules", "~/.ssh"], '"~/.ssh" = "allow"'),
    ]
    assert "hidden without it" in document[1]["opens"]
    assert clone("rule", "list", "--json").json["waiting"] == document
    with connected(clone) as client:
        client.watch()
        event = client.next_event()
        assert getattr(event, "warnings", None) == (f"{line}: yolofs trust",)


def test_a_broken_settings_file_is_told_and_commands_go_on(clone: Program) -> None:
    """Under a mount the rules that it had before stay in force, so a command that needs no others
    works.
    """
    with clone.mounted("--root", ".", expected_in_log=("not TOML",)) as view:
        (clone.project / ".yolofs.toml").write_text("[rules\n")
        wait_until(lambda: "not TOML" in clone.log, "the daemon has seen it")
        for words in (["mount"], ["rule", "list"], ["rule", "explain", "a"], ["status"]):
            done = clone(*words)
            assert 1 <= done.err.count("not TOML") <= 2, (words, done.err)
        assert clone("mount").out == f"{view}\n"
    for words in (["mount"], ["rule", "list"]):
        assert "not TOML" in clone.refused(*words, code=3)


def test_lines_of_a_tree_do_no_harm_to_the_terminal(clone: Program) -> None:
    settings(
        clone,
        '[run]\nkeep_env = ["\\u001b[2J", "A\\nagree to nothing", "\\u202eEVIL", "\\u009b1m"]\n'
        '[rules]\n"~/\\u001b]0;x\\u0007" = "allow"\n"~/a\\u202eb   " = "allow"\n',
    )
    done = clone("trust", code=EXIT)
    for text in (done.out, done.err, clone("status").err):
        assert all(char.isprintable() or char == "\n" for char in text), text
    assert len(done.out.splitlines()) == 6


def test_a_settings_file_that_is_a_link_to_a_pseudo_file_reveals_nothing(clone: Program, tmp_path: Path) -> None:
    path = clone.project / ".yolofs.toml"
    path.unlink()
    path.symlink_to("/proc/self/environ")
    assert clone("trust", code=3, MINE="not to be shown").err.count("not to be shown") == 0
    path.unlink()
    (tmp_path / "elsewhere").write_text('[run]\nkeep_env = ["A"]\n')
    path.symlink_to(tmp_path / "elsewhere")
    assert waiting(clone) == ['run.keep_env = ["A"]']
    clone.trust()
    replace_text(tmp_path / "elsewhere", '[run]\nkeep_env = ["*"]\n')
    assert waiting(clone) == ['run.keep_env = ["*"]']


def test_thousands_of_lines_are_judged_in_seconds_and_shown_to_the_last(clone: Program) -> None:
    rules = "".join(f'"~/d{number}" = "allow"\n' for number in range(2000))
    settings(clone, f"[rules]\n{rules}")
    done = clone("trust", code=EXIT)
    assert '"~/d1999" = "allow"' in done.out
    assert "these 2000 lines" in done.err


def test_of_a_file_of_very_many_patterns_what_tightens_holds_at_once(clone: Program) -> None:
    states = ("deny", "allow", "hidden", "read-only")
    lines = [f'"**/n{number}" = "{states[number % 4]}"' for number in range(400)]
    settings(clone, "\n".join(["[rules]", *lines, '"docs/**" = "read-only"', '"a.txt" = "deny"']))
    for name in ("n4", "n6"):
        (clone.project / name).write_text(SECRET)
    waits = {one["text"]: one["opens"] for one in clone("status", "--json").json["waiting"]}
    assert all("too many rules" in opens and "yolofs trust" in opens for opens in waits.values())
    assert "what holds is as if it were not there" in waits['"**/n1" = "allow"']
    assert "it holds without its /**" in waits['"docs/**" = "read-only"']
    assert not [text for text, opens in waits.items() if "deny" in text and "it holds now" not in opens]
    assert not [text for text in waits if "hidden" in text]
    assert reads(clone, *(clone.project / name for name in ("n4", "n6", "a.txt"))) == ""
    clone("run", "sh", "-c", "mkdir docs", code=1)
    clone.trust()
    assert clone("status", "--json").json["waiting"] == []
    assert any(line.split()[:2] == ["allow", "**/n1"] for line in clone("rule", "list").out.splitlines())


def test_a_key_of_thousands_of_parts_is_one_line(clone: Program) -> None:
    (clone.project / ".yolofs.toml").write_text(".".join(["a"] * 3000) + " = 1\n")
    assert "unknown key" in clone.refused("mount", code=3)


@pytest.mark.skipif(not IS_DIRECT, reason="with pyfuse3 they are off by default")
def test_a_tree_does_not_take_away_what_lists_keep_from_others(clone: Program) -> None:
    entries = ((1, 7, NOBODY), (4, 0, NOBODY), (32, 0, NOBODY))
    for_the_owner_alone = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    private = clone.project / "private"
    private.mkdir()
    try:
        os.setxattr(private, "system.posix_acl_default", for_the_owner_alone)
    except OSError:
        do_without("the disk of temporary files knows no access control lists")
    settings(clone, "[mount]\nxattrs = false\n")
    assert waiting(clone) == ["mount.xattrs = false"]
    clone("run", "sh", "-c", "umask 0; echo > private/made")
    clone("commit", "--yes")
    assert stat.S_IMODE((private / "made").stat().st_mode) == 0o600
