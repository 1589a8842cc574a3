"""``yolofs rule``, with and without a mount."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.program import COMMAND, Program, can_read, wait_until
from yolofs.daemon.client import Client
from yolofs.errors import JournalError
from yolofs.rules import PathRule, RuleState, spell


@pytest.fixture(params=["mounted", pytest.param("unmounted")])
def ruled(
    request: pytest.FixtureRequest, yolofs: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Program]:
    """Return the program in a project with a home directory of its own, with and without a mount."""
    home = tmp_path / "home"
    (home / ".config/yolofs").mkdir(parents=True)
    (home / ".config/yolofs/config.toml").write_text('[rules]\n"~/notes" = "allow"\n')
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (yolofs.project / ".yolofs.toml").write_text('[rules]\nvendor = "read-only"\n')
    if request.param == "unmounted":
        yield yolofs
    else:
        with yolofs.mounted():
            yield yolofs


def learned(yolofs: Program) -> dict[str, str]:
    """Return what ``rules.toml`` holds."""
    rules: dict[str, str] = tomllib.loads((yolofs.session / "rules.toml").read_text())["rules"]
    return rules


@pytest.mark.mount
def test_rules_are_learned_listed_and_forgotten(ruled: Program, tmp_path: Path) -> None:
    assert ruled("rule", "allow", "dir").err == "dir is allow now\n"
    assert ruled("rule", "deny", "dir").err == "dir is deny now, and not allow (.yolofs/rules.toml:5) any more\n"
    assert ruled("rule", "ask", "vendor").err == "vendor is ask now, and not read-only (.yolofs.toml:2) any more\n"
    ruled("rule", "hidden", "**/secret")
    ruled("rule", "write-ask", "dir/**/*.c")
    ruled("rule", "read-only", "~/notes/**")
    assert learned(ruled) == {
        "dir": "deny",
        "vendor": "ask",
        "**/secret": "hidden",
        "dir/**/*.c": "write-ask",
        f"{tmp_path}/home/notes/**": "read-only",
    }
    done = ruled("rule", "list")
    assert [re.split(r"  +", line) for line in done.out.splitlines()] == [
        ["deny", "dir", ".yolofs/rules.toml:5"],
        ["ask", "vendor", ".yolofs/rules.toml:6"],
        ["hidden", "**/secret", ".yolofs/rules.toml:7"],
        ["write-ask", "dir/**/*.c", ".yolofs/rules.toml:8"],
        ["read-only", f"{tmp_path}/home/notes/**", ".yolofs/rules.toml:9"],
        ["read-only", "vendor", ".yolofs.toml:2", "(overridden)"],
        ["allow", f"{tmp_path}/home/notes", f"{tmp_path}/home/.config/yolofs/config.toml:2", "(overridden)"],
    ]
    assert re.fullmatch(r"and \d{3} built-in rules: yolofs rule list --all\n", done.err)
    assert "hidden     " + f"{tmp_path}/home/.ssh/**" in ruled("rule", "list", "--all").out
    assert ruled("rule", "unset", "dir").err == "forgot the rule about dir\n"
    assert (
        ruled("rule", "unset", "vendor").err == "forgot the rule about vendor: it is read-only now (.yolofs.toml:2)\n"
    )
    message = ruled.refused("rule", "unset", "vendor", code=2)
    assert message == (
        "yolofs: nothing was learned about vendor; the rule about it is written at .yolofs.toml:2\n"
        "hint: yolofs rule list\n"
    )
    assert list(learned(ruled)) == ["**/secret", "dir/**/*.c", f"{tmp_path}/home/notes/**"]


@pytest.mark.mount
def test_the_list_as_json_has_all_rules(ruled: Program, tmp_path: Path) -> None:
    ruled("rule", "ask", "vendor")
    document = ruled("rule", "list", "--json").json
    rules = {(rule["origin"], rule["key"]): rule for rule in document["rules"]}
    assert rules["learned", f"{ruled.project}/vendor"] == {
        "key": f"{ruled.project}/vendor",
        "state": "ask",
        "source": ".yolofs/rules.toml:5",
        "origin": "learned",
        "overridden": False,
    }
    assert rules["project", f"{ruled.project}/vendor"]["overridden"] is True
    assert rules["user", f"{tmp_path}/home/notes"]["state"] == "allow"
    assert rules["preset", f"{tmp_path}/home/.ssh/**"]["source"] == "built-in: Credentials"
    assert document["warnings"] == []


@pytest.mark.mount
def test_explain_tells_the_rule_and_where_it_is_written(ruled: Program) -> None:
    ruled("rule", "deny", "vendor")
    assert ruled("rule", "explain", "vendor/x").out == (
        f"{ruled.project}/vendor/x: deny\n"
        "by the rule vendor = deny, .yolofs/rules.toml:5\n"
        f"which holds for {ruled.project}/vendor and below\n"
        "in place of read-only, .yolofs.toml:2\n"
        "\n"
        "read, write, create, delete, rename, link, metadata, execute, list: refused (EACCES)\n"
    )
    assert ruled("rule", "explain", "a.txt", "--op", "write").out == (
        f"{ruled.project}/a.txt: allow\n"
        "by the rule . = allow, built-in: The project\n"
        f"which holds for {ruled.project} and below\n"
        "\n"
        "write: allowed\n"
    )
    assert ruled("rule", "explain", "x.pem", "--json").json["state"] == "deny"
    assert ruled("rule", "explain", "node_modules/x.pem", "--json").json["state"] == "allow"
    document = ruled("rule", "explain", "~/x", "--json").json
    assert (document["state"], document["operations"]["read"], document["operations"]["list"]) == (
        "ask",
        "asks",
        "allowed",
    )
    assert document["rule"]["source"] == "built-in: Home directories"


@pytest.mark.mount
@pytest.mark.parametrize("name", [b"a*b", b"**", b"\xff", b"new\nline"])
def test_a_file_of_any_name_can_be_named(ruled: Program, name: bytes) -> None:
    path = os.fsencode(ruled.project) + b"/" + name
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    ruled("rule", "deny", name)
    assert ruled("rule", "explain", name).out.splitlines()[1].endswith(".yolofs/rules.toml:5")
    ruled("rule", "unset", name)
    assert learned(ruled) == {}


@pytest.mark.mount
@pytest.mark.parametrize("name", [b"a*b", b"**/x", b"\xff", b"file:/x"])
def test_a_rule_can_be_unset_by_the_key_under_which_it_is_listed(ruled: Program, name: bytes) -> None:
    """What it is about may be gone, so that its name could be taken for a pattern."""
    path = Path(os.fsdecode(os.fsencode(ruled.project) + b"/" + name))
    path.parent.mkdir(exist_ok=True)
    path.touch()
    ruled("rule", "deny", spell(PathRule(os.fsencode(path), RuleState.DENY, "")))
    assert list(learned(ruled).values()) == ["deny"]
    path.unlink()
    listed = [rule["key"] for rule in ruled("rule", "list", "--json").json["rules"] if "rules.toml" in rule["source"]]
    ruled("rule", "unset", *listed)
    assert learned(ruled) == {}


@pytest.mark.mount
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["allow", "file:///%"], "expected %XX, with two hex digits but 00"),
        (["allow", "x*y"], "x*y is neither a pattern nor a file that is there"),
        (["allow", "**/a/b"], "**/a/b is neither a pattern nor a file that is there"),
        (["allow", ".yolofs"], "is the session's own: it is always hidden, and no rule can show it"),
        (["allow", ".yolofs/journal"], "is the session's own: it is always hidden, and no rule can show it"),
        (["unset", "x"], "nothing was learned about x"),
        (["rw", "x"], "no such command"),
        (["hidden", ""], "an empty path means nothing"),
        (["deny", "file:/etc/hosts"], "file:/etc/hosts is neither a file that is there nor a URI that is understood"),
        (["deny", "FILE:///etc/**"], "FILE:///etc/** is neither a file that is there nor a URI that is understood"),
        (["explain", ""], "an empty path means nothing"),
        (["unset", ""], "an empty path means nothing"),
    ],
)
def test_what_makes_no_sense_is_refused(ruled: Program, words: list[str], message: str) -> None:
    assert message in ruled.refused("rule", *words, code=2)


def test_a_name_cannot_give_the_terminal_commands(ruled: Program) -> None:
    name = "a\x1b[31m"
    shown = '"a\\033[31m"'
    assert f"{shown} is deny now" in ruled("rule", "deny", name).err
    assert f"forgot the rule about {shown}" in ruled("rule", "unset", name).err
    assert f"nothing was learned about {shown}" in ruled.refused("rule", "unset", name, code=2)
    assert "\x1b" not in ruled("rule", "read-only", f"**/{name}").err


@pytest.mark.parametrize("path", [".yolofs", ".yolofs/journal"])
def test_the_sessions_own_is_explained_as_always_hidden(yolofs: Program, path: str) -> None:
    (yolofs.project / ".yolofs.toml").write_text('[rules]\n".yolofs/journal" = "allow"\n')
    shown = yolofs("rule", "explain", path).out
    assert f"{yolofs.project / path}: hidden" in shown
    assert ".yolofs = hidden, the session's own: no rule can show it" in shown
    found = yolofs("rule", "explain", path, "--json").json
    assert (found["state"], found["operations"]["read"]) == ("hidden", "absent")


@pytest.mark.mount
def test_explain_follows_links_as_the_view_has_them(yolofs: Program) -> None:
    project = yolofs.project
    for name in ("closed", "free"):
        (project / name).mkdir()
        (project / name / "f").touch()
    (project / "moved").symlink_to("free")
    (project / "gone").symlink_to("closed")
    yolofs("rule", "deny", "closed")
    with yolofs.mounted() as view:
        (view / "new").symlink_to("closed")
        (view / "deep").mkdir()
        (view / "deep/up").symlink_to("../new")
        (view / "moved").unlink()
        (view / "moved").symlink_to(project / "closed")
        (view / "gone").unlink()
        (view / "gone").mkdir()
        (view / "gone/f").touch()
        for path in ("new/f", "deep/up/f", "moved/f", "gone/f", "free/f", "deep/up/../free/f"):
            if path == "moved/f":
                expected = False  # absolute: for who works in the view as his whole machine
            else:
                expected = os.access(view / path, os.R_OK) and can_read(view / path)
            found = yolofs("rule", "explain", "--op", "read", path, "--json").json
            assert (found["operations"]["read"] == "allowed") is expected, path
        assert found["path"] == str(project / "free/f")
        assert yolofs("rule", "explain", view / "new/f", "--json").json["path"] == str(project / "closed/f")


def test_explain_of_a_link_is_about_the_link_or_where_it_leads(yolofs: Program) -> None:
    project = yolofs.project
    (project / "closed").mkdir()
    (project / "closed/f").touch()
    (project / "first").symlink_to("second")
    (project / "second").symlink_to("closed/f")
    yolofs("rule", "deny", "closed")
    shown = yolofs("rule", "explain", "first").out
    assert f"it is a symbolic link: what is done through it is judged at {project}/closed/f" in shown
    found = yolofs("rule", "explain", "first", "--json").json
    assert (found["path"], found["link"]) == (str(project / "first"), str(project / "closed/f"))
    assert found["operations"].keys() == {"create", "delete", "rename", "link", "metadata"}
    for operation in ("read", "write", "execute"):
        found = yolofs("rule", "explain", "--op", operation, "first", "--json").json
        assert (found["path"], found["link"]) == (str(project / "closed/f"), None)
        assert found["operations"] == {operation: "refused"}
    (project / "way").symlink_to("closed")
    assert yolofs("rule", "explain", "way/", "--json").json["path"] == str(project / "closed")


@pytest.mark.mount
def test_explain_goes_by_the_type_that_the_view_has(yolofs: Program) -> None:
    project = yolofs.project
    (project / "made").mkdir()
    (project / "gone").write_text("a file of base")
    yolofs("rule", "deny", "made/key")
    yolofs("rule", "deny", "gone/key")
    with yolofs.mounted() as view:
        (view / "gone").unlink()
        (view / "gone").mkdir()
        (view / "gone/key").parent.stat()
        for name, other in (("made", "elsewhere"), ("gone", "away")):
            with pytest.raises(PermissionError):
                (view / name).rename(view / other)
            assert yolofs("rule", "explain", name, "--json").json["operations"]["rename"] == "refused"
        yolofs("rule", "unset", "made/key")
        (view / "made").rmdir()
        (view / "made").write_text("a file of the view")
        yolofs("rule", "deny", "made/key")
        (view / "made").rename(view / "moved")
        (view / "moved").rename(view / "made")
        assert yolofs("rule", "explain", "made", "--json").json["operations"]["rename"] == "allowed"


@pytest.mark.mount
def test_explain_tells_that_reads_are_judged_by_names_that_were_looked_at(yolofs: Program) -> None:
    project = yolofs.project
    (project / "closed").mkdir()
    (project / "closed/f").write_text("content")
    os.link(project / "closed/f", project / "open")
    yolofs("rule", "deny", "closed/f")
    with yolofs.mounted() as view:
        assert (view / "open").read_text() == "content"
        (view / "closed/f").stat()
        with pytest.raises(PermissionError):
            (view / "open").read_text()
        assert "once it was looked at, reads of the file are judged by it" in yolofs("rule", "explain", "open").out


@pytest.mark.mount
def test_explain_tells_of_other_names_as_they_count(yolofs: Program) -> None:
    project = yolofs.project
    for name in ("ro", "free"):
        (project / name).mkdir()
    (project / "ro/f").touch()
    (project / "free/alone").touch()
    os.link(project / "ro/f", project / "free/ro")
    (project / ".yolofs.toml").write_text('[rules]\n"ro" = "read-only"\n')
    with yolofs.mounted() as view:
        for path in ("free/ro", "free/alone"):
            operations = yolofs("rule", "explain", path, "--json").json["operations"]
            may_write = os.access(view / path, os.W_OK) and can_append(view / path)
            assert (operations["write"] == "allowed") is may_write
        assert "its other name" in yolofs("rule", "explain", "free/ro").out
        os.link(view / "free/alone", view / "free/new")
        yolofs("rule", "read-only", "free/alone")
        assert not can_append(view / "free/new")
        found = yolofs("rule", "explain", "free/new", "--json").json
        assert found["operations"]["write"] == "refused"
        assert [other["path"] for other in found["other_names"]] == [str(project / "free/alone")]


@pytest.mark.mount
@pytest.mark.parametrize("root", [".", "/"])
def test_explain_judges_reading_by_the_names_that_are_staged(yolofs: Program, root: str) -> None:
    """Those the view knows in any case; base's other names it knows once they were looked at."""
    (yolofs.project / "base").touch()
    with yolofs.mounted("--root", root) as mountpoint:
        view = mountpoint / yolofs.project.relative_to(os.path.join(yolofs.project, root))
        (view / "a1").write_text("hi")
        os.link(view / "a1", view / "b1")
        os.link(view / "base", view / "more")
        yolofs("rule", "deny", "b1")
        yolofs("rule", "deny", "more")
        for name, other in (("a1", "b1"), ("base", "more")):
            assert not can_read(view / name)
            found = yolofs("rule", "explain", name, "--json").json
            assert (found["state"], found["operations"]["read"]) == ("allow", "refused")
            assert [(one["path"], one["staged"]) for one in found["other_names"]] == [
                (str(yolofs.project / other), True)
            ]
            text = yolofs("rule", "explain", name).out
            assert "read, write, link, metadata, execute: refused (EACCES)" in text
            assert "reads and changes of the file are judged by it, too" in text


@pytest.mark.mount
def test_explain_finds_the_names_that_a_staged_file_got_from_its_other_name(yolofs: Program) -> None:
    (yolofs.project / "one").write_text("1")
    os.link(yolofs.project / "one", yolofs.project / "two")
    with yolofs.mounted() as view:
        (view / "one").write_text("changed")
        os.link(view / "one", view / "new")
        yolofs("rule", "read-only", "new")
        assert not can_append(view / "two")
        assert yolofs("rule", "explain", "two", "--json").json["operations"]["write"] == "refused"


@pytest.mark.mount
def test_explain_judges_names_that_were_not_found_where_base_has_the_file(yolofs: Program, tmp_path: Path) -> None:
    (yolofs.project / ".yolofs.toml").write_text("ask_timeout = 0\n")
    (yolofs.project / "h").mkdir()
    (yolofs.project / "h/hl").touch()
    os.link(yolofs.project / "h/hl", tmp_path / "far")
    yolofs("rule", "allow", "h/hl")
    with yolofs.mounted() as view:
        (view / "h/hl").rename(view / "h/hlr")
        yolofs("rule", "unset", "h/hl")
        yolofs("rule", "allow", "h/hlr")
        assert not can_append(view / "h/hlr")
        assert yolofs("rule", "explain", "h/hlr", "--json").json["operations"]["write"] == "asks"
        yolofs("rule", "allow", "h/hl")
        assert can_append(view / "h/hlr")
        assert yolofs("rule", "explain", "h/hlr", "--json").json["operations"]["write"] == "allowed"


@pytest.mark.mount
def test_explain_of_what_lies_outside_base_does_not_read_the_journal(yolofs: Program, tmp_path: Path) -> None:
    with yolofs.mounted() as view:
        for name in ("x", "y"):
            (view / name).touch()
    journal = yolofs.session / "journal"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([lines[0], b"broken\n", *lines[1:]]))
    assert yolofs("rule", "explain", tmp_path / "outside", "--json").json["operations"]["list"] == "allowed"
    yolofs.refused("rule", "explain", "x", code=JournalError.exit_code)


def can_append(path: Path) -> bool:
    try:
        path.open("ab").close()
    except PermissionError:
        return False
    return True


@pytest.mark.mount
def test_rules_take_effect_in_the_mount_at_once(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        path = view / "dir/b.txt"
        for state in ("deny", "allow", "hidden", "read-only"):
            yolofs("rule", state, view / "dir")  # the path in the mount stands for that in the project
            assert learned(yolofs) == {"dir": state}
            if state in ("deny", "hidden"):
                with pytest.raises(PermissionError if state == "deny" else FileNotFoundError):
                    path.read_text()
            else:
                assert path.read_text() == "b\n"
        with pytest.raises(PermissionError):
            path.write_text("x")
        yolofs("rule", "unset", "dir")
        path.write_text("x")
    with yolofs.mounted() as view:
        assert (view / "dir/b.txt").read_text() == "x"


@pytest.mark.mount
@pytest.mark.parametrize("place", ["node_modules/evil", ".git", "lib/site-packages", "tests/deep"])
def test_no_session_can_be_made_where_other_patterns_do_not_count(yolofs: Program, place: str) -> None:
    (yolofs.project / place).mkdir(parents=True)
    rules = {"tests/**": "allow"} | ({"**/.yolofs": "deny"} if place == "tests/deep" else {})
    (yolofs.project / ".yolofs.toml").write_text(
        "[rules]\n" + "".join(f'"{key}" = "{state}"\n' for key, state in rules.items())
    )
    with yolofs.mounted() as view:
        target, other, file = (view / place / name for name in (".yolofs", "other", "file"))
        other.mkdir()
        file.touch()
        for make in (
            target.mkdir,
            target.touch,
            lambda: target.symlink_to("other"),
            lambda: other.rename(target),
            lambda: os.link(file, target),
            lambda: os.mkfifo(target),
        ):
            with pytest.raises(PermissionError):
                make()
        yolofs("rule", "allow", yolofs.project / place / ".yolofs")
        target.mkdir()


@pytest.mark.mount
def test_an_answer_for_this_session_is_listed_and_can_be_unset(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        client = Client.connect(os.fsencode(yolofs.session))
        assert client is not None
        with client:
            client.set_rule(PathRule(bytes(yolofs.project / "dir"), RuleState.DENY, ""), lasting=False)
        with pytest.raises(PermissionError):
            (view / "dir/b.txt").read_text()
        assert re.split(r"  +", yolofs("rule", "list").out.strip()) == ["deny", "dir", "an answer in this session"]
        yolofs("rule", "unset", "dir")
        assert (view / "dir/b.txt").read_text() == "b\n"
    assert not (yolofs.session / "rules.toml").exists()


@pytest.mark.mount
def test_broken_rules_are_told_and_old_ones_listed(yolofs: Program) -> None:
    path = yolofs.session / "rules.toml"
    with yolofs.mounted(expected_in_log=("rules.toml:2",)):
        yolofs("rule", "deny", "dir")
        path.write_text("[rules]\ndir = 3\n")
        wait_until(lambda: "rules.toml:2" in yolofs("rule", "list").err, "the warning")
        assert "deny       dir" in yolofs("rule", "list").out
        message = yolofs.refused("rule", "allow", "dir", code=3)
        assert message.startswith("yolofs: .yolofs/rules.toml:2: rules.dir: expected")
        assert path.read_text() == "[rules]\ndir = 3\n"
    assert yolofs.refused("rule", "list", code=3).startswith("yolofs: .yolofs/rules.toml:2: rules.dir: expected")


@pytest.mark.mount
def test_what_was_asked_is_tried_on_the_rules_as_they_are_now(yolofs: Program, tmp_path: Path) -> None:
    assert yolofs("rule", "test").err == (
        "note: not all that rules let be read is known: it is kept while the view is mounted, and up to a number\n"
        "nothing was recorded in this session\n"
    )
    (yolofs.project / ".yolofs.toml").write_text('ask_timeout = 0.1\n[rules]\ndocs = "ask"\nsecret = "deny"\n')
    for name in ("docs/1", "docs/2", "docs/3", "secret"):
        (yolofs.project / name).parent.mkdir(exist_ok=True)
        (yolofs.project / name).write_text(name)
    with yolofs.mounted() as view:
        client = Client.connect(os.fsencode(yolofs.session))
        assert client is not None
        with client:
            answering = subprocess.Popen([*COMMAND, "watch", "--allow-all"], cwd=yolofs.project, stderr=subprocess.PIPE)
            wait_until(lambda: can_read(view / "docs/1"), "somebody who allows")
            assert can_read(view / "docs/2")
            assert can_read(view / "docs/3")
            assert not can_read(view / "secret")
            answering.terminate()
            answering.communicate()
        out = yolofs("rule", "test").out
        assert out.count(f"read {yolofs.project}/docs/1") == 1  # however often, and whatever the answers were
        assert "\nthese rules would have spared most questions:\n" in out
        assert f"  yolofs rule write-ask {yolofs.project}/docs\n" in out
        document = yolofs("rule", "test", "--json").json
        (suggestion,) = document["suggestions"]
        assert (suggestion["key"], suggestion["state"], suggestion["paths"]) == (
            f"{yolofs.project}/docs",
            "write-ask",
            3,
        )
        assert (document["allowed"], document["refused"], document["asked_then"]) == (0, 1, 0)
        assert (document["free"], document["complete"]) == (0, True)
        assert document["asked"] == suggestion["asks"] >= 3
        yolofs("rule", "write-ask", "docs")
    after = yolofs("rule", "test", "--json").json
    assert (after["allowed"], after["asked"], after["refused"], after["suggestions"]) == (document["asked"], 0, 1, [])


@pytest.mark.mount
def test_what_rules_allowed_is_tried_on_the_rules_as_they_are_now(yolofs: Program) -> None:
    def replayed() -> tuple[int, ...]:
        document = yolofs("rule", "test", "--json").json
        return tuple(document[key] for key in ("accesses", "free", "allowed", "asked", "refused"))

    (yolofs.project / ".yolofs.toml").write_text('[rules]\n"." = "allow"\n')
    with yolofs.mounted() as view:
        for _ in range(3):
            (view / "a.txt").read_text()
            os.listdir(view / "dir")
        (view / "dir/b.txt").rename(view / "dir/c.txt")
        (view / "new").write_text("new")
        assert replayed() == (5, 5, 5, 0, 0)
        yolofs("rule", "deny", "a.txt")
        yolofs("rule", "write-ask", "dir")
        assert replayed() == (5, 5, 2, 2, 1)
        assert "5 accesses were recorded, 5 of which rules allowed" in yolofs("rule", "test").out
    document = yolofs("rule", "test", "--json").json
    assert (document["accesses"], document["complete"]) == (3, False)


@pytest.mark.mount
def test_what_a_commit_left_staged_is_tried_on_the_rules_as_they_are_now(yolofs: Program) -> None:
    (yolofs.project / ".yolofs.toml").write_text('[rules]\n"." = "allow"\n')
    with yolofs.mounted() as view:
        (view / "made").mkdir()
        (view / "made/new").write_text("new")
        (view / "a.txt").write_text("written")
        (view / "dir/b.txt").unlink()
        (view / "go").write_text("gone")
    yolofs("commit", "--yes", "go")
    document = yolofs("rule", "test", "--json").json
    assert [document[key] for key in ("accesses", "allowed", "refused")] == [4, 4, 0], document
    yolofs("rule", "deny", "made")
    document = yolofs("rule", "test", "--json").json
    assert [document[key] for key in ("allowed", "refused")] == [2, 2], document


@pytest.mark.mount
def test_no_program_can_make_a_session_that_the_next_command_would_find(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "dir/other").mkdir()
        acts: tuple[Callable[[], None], ...] = (
            lambda: os.mkdir(view / "dir/.yolofs"),
            lambda: os.rename(view / "dir/other", view / "dir/.yolofs"),
            lambda: os.symlink("other", view / "dir/.yolofs"),
        )
        for act in acts:
            with pytest.raises(PermissionError):
                act()
        assert "**/.yolofs = read-only, built-in" in yolofs("rule", "explain", "dir/.yolofs", "--op", "create").out


@pytest.mark.mount
def test_a_suggested_rule_can_be_copied_into_a_shell_whatever_the_directory_is_called(yolofs: Program) -> None:
    (yolofs.project / ".yolofs.toml").write_text('ask_timeout = 20.0\n[rules]\n"q" = "ask"\n')
    directory = yolofs.project / "q" / "it's 2 *\nlines"
    directory.mkdir(parents=True)
    with yolofs.mounted() as view:
        for number in range(3):
            (directory / f"{number}").write_text("x")
            with subprocess.Popen(["cat", view / "q" / directory.name / f"{number}"], stdout=subprocess.DEVNULL):
                wait_until(lambda: yolofs("asks", "--json").json["asks"], "an ask")
                yolofs("answer", str(number + 1), "allow")
        out = yolofs("rule", "test").out
        (line,) = [line.strip() for line in out.splitlines() if line.startswith("  yolofs rule ")]
        words = subprocess.run(
            ["bash", "-c", line.replace("yolofs", "printf '%s\\0'", 1)], stdout=subprocess.PIPE, check=True
        ).stdout.split(b"\0")[:-1]
        yolofs(*words)
        assert yolofs("rule", "test", "--json").json["asked"] == 0
        assert yolofs("rule", "explain", directory, "--json").json["state"] == "write-ask"


def test_a_name_with_spaces_at_its_ends_is_listed_so_that_they_are_seen(yolofs: Program) -> None:
    assert '" end " is deny now' in yolofs("rule", "deny", " end ").err
    assert '" end "' in yolofs("rule", "list").out
    yolofs("rule", "unset", " end ")
