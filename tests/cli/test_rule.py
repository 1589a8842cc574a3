"""``yolofs rule``, with and without a mount."""

from __future__ import annotations

import contextlib
import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.program import Program, can_append, can_read, replace_text, wait_until
from tests.support.rows import row
from yolofs.daemon.rpc.client import Client
from yolofs.rules import PathRule, RuleState, spell_rule


def learned(yolofs: Program) -> dict[str, str]:
    """Return what ``rules.toml`` holds."""
    rules: dict[str, str] = tomllib.loads((yolofs.session / "rules.toml").read_text())["rules"]
    return rules


@pytest.mark.mount
@pytest.mark.parametrize("is_mounted", [False, True])
def test_a_state_is_given_to_several_paths_or_to_none(yolofs: Program, is_mounted: bool) -> None:
    with yolofs.mounted() if is_mounted else contextlib.nullcontext():
        assert yolofs("rule", "hidden", "dir", "**/*.own").err == "dir is hidden now\n**/*.own is hidden now\n"
        assert "is neither a pattern" in yolofs("rule", "allow", "a.txt", "no*pattern", code=2).err
        assert learned(yolofs) == {"dir": "hidden", "**/*.own": "hidden"}


@pytest.mark.mount
def test_rules_are_learned_listed_and_forgotten(ruled: Program, tmp_path: Path) -> None:
    assert ruled("rule", "allow", "dir").err == "dir is allow now\n"
    assert ruled("rule", "deny", "dir").err == "dir is deny now, and not allow (.yolofs/rules.toml:5) any more\n"
    assert ruled("rule", "deny", "dir").err == "dir is deny as before (.yolofs/rules.toml:5)\n"
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
    rules = {(rule["level"], rule["key"]): rule for rule in document["rules"]}
    assert rules["learned", f"{ruled.project}/vendor"] == {
        "key": f"{ruled.project}/vendor",
        "state": "ask",
        "source": ".yolofs/rules.toml:5",
        "level": "learned",
        "overridden": False,
    }
    assert rules["project", f"{ruled.project}/vendor"]["overridden"] is True
    assert rules["user", f"{tmp_path}/home/notes"]["state"] == "allow"
    assert rules["preset", f"{tmp_path}/home/.ssh/**"]["source"] == "built-in: Credentials"
    assert document["warnings"] == []


@pytest.mark.mount
def test_a_file_of_any_name_can_be_named(ruled: Program) -> None:
    for name in (b"a*b", b"**", b"\xff", b"new\nline"):
        with row(name):
            path = os.fsencode(ruled.project) + b"/" + name
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
            ruled("rule", "deny", name)
            assert ruled("rule", "explain", name).out.splitlines()[1].endswith(".yolofs/rules.toml:5")
            ruled("rule", "unset", name)
            assert learned(ruled) == {}


@pytest.mark.mount
def test_a_rule_can_be_unset_by_the_key_under_which_it_is_listed(ruled: Program) -> None:
    """What it is about may be gone, so that its name could be taken for a pattern."""
    for name in (b"a*b", b"**/x", b"\xff", b"file:/x"):
        with row(name):
            path = Path(os.fsdecode(os.fsencode(ruled.project) + b"/" + name))
            path.parent.mkdir(exist_ok=True)
            path.touch()
            ruled("rule", "deny", spell_rule(PathRule(os.fsencode(path), RuleState.DENY, "")))
            assert list(learned(ruled).values()) == ["deny"]
            path.unlink()
            rules = ruled("rule", "list", "--json").json["rules"]
            ruled("rule", "unset", *(rule["key"] for rule in rules if "rules.toml" in rule["source"]))
            assert learned(ruled) == {}


SENSELESS = [
    (["allow", "file:///%"], "expected %XX, with two hex digits but 00"),
    (["allow", "x*y"], "x*y is neither a pattern nor a file that exists"),
    (["allow", "**/a/b"], "**/a/b is neither a pattern nor a file that exists"),
    (["allow", ".yolofs"], "is the session's own: it is always hidden, and no rule can show it"),
    (["allow", ".yolofs/journal"], "is the session's own: it is always hidden, and no rule can show it"),
    (["unset", "x"], "nothing was learned about x"),
    (["rw", "x"], "no such command"),
    (["hidden", ""], "an empty path means nothing"),
    (["deny", "file:/etc/hosts"], "file:/etc/hosts is neither a file that exists nor a URI that yolofs understands"),
    (["deny", "FILE:///etc/**"], "FILE:///etc/** is neither a file that exists nor a URI that yolofs understands"),
    (["explain", ""], "an empty path means nothing"),
    (["unset", ""], "an empty path means nothing"),
]


@pytest.mark.mount
def test_rule_refuses_malformed_keys_and_what_nothing_was_learned_about(ruled: Program) -> None:
    for words, message in SENSELESS:
        with row(*words):
            assert message in ruled.refused("rule", *words, code=2)


@pytest.mark.mount
def test_a_name_cannot_give_the_terminal_commands(ruled: Program) -> None:
    name = "a\x1b[31m"
    shown = '"a\\033[31m"'
    assert f"{shown} is deny now" in ruled("rule", "deny", name).err
    assert f"forgot the rule about {shown}" in ruled("rule", "unset", name).err
    assert f"nothing was learned about {shown}" in ruled.refused("rule", "unset", name, code=2)
    assert "\x1b" not in ruled("rule", "read-only", f"**/{name}").err


def test_rule_quotes_a_key_that_is_nothing_but_blanks(yolofs: Program) -> None:
    assert yolofs("rule", "deny", " ").err == '" " is deny now\n'
    assert yolofs("rule", "deny", "in the middle").err == "in the middle is deny now\n"
    assert [re.split(r"  +", line)[1] for line in yolofs("rule", "list").out.splitlines()] == ['" "', "in the middle"]


@pytest.mark.mount
def test_a_path_in_a_directory_that_has_replaced_a_link_of_base_is_the_one_that_lists_show(yolofs: Program) -> None:
    """As long as base has the link, the rule is in force where that leads, too, and says so."""
    (yolofs.project / "link").symlink_to("dir")
    with yolofs.mounted() as view:
        (view / "link").unlink()
        (view / "link").mkdir()
        (view / "link/b.txt").write_text("in the directory\n")
        also = "; also dir/b.txt, where a link of base leads"
        assert yolofs("rule", "deny", "link/b.txt").err == f"link/b.txt is deny now{also}\n"
        assert learned(yolofs) == {"link/b.txt": "deny"}
        assert not can_read(view / "link/b.txt")
        assert not can_read(view / "dir/b.txt")
        assert "link/b.txt: deny" in yolofs("rule", "explain", "link/b.txt").out
        yolofs("rule", "unset", "link/b.txt")
        assert can_read(view / "link/b.txt")
        yolofs("rule", "deny", view / "link/b.txt")
        assert learned(yolofs) == {"link/b.txt": "deny"}
        yolofs("rule", "unset", "link/b.txt")
        yolofs("rule", "deny", "link/absent")  # nothing is there that a list could show
        assert learned(yolofs) == {"link/absent": "deny"}
        yolofs("commit", "--yes", "link")
        assert yolofs("rule", "deny", "link/b.txt").err == "link/b.txt is deny now\n"
        assert can_read(view / "dir/b.txt")


@pytest.mark.mount
def test_a_path_by_a_link_that_the_view_alone_has_is_where_that_leads(yolofs: Program, tmp_path: Path) -> None:
    (yolofs.project / "secret").mkdir()
    (yolofs.project / "secret/f").touch()
    with yolofs.mounted() as view:
        (view / "link").symlink_to("secret")
        (view / "round").symlink_to("round")
        (view / "out").symlink_to(tmp_path / "outside")
        yolofs("rule", "read-only", view / "link/f")
        assert can_read(view / "link/f")
        assert not can_append(view / "secret/f")
        yolofs("rule", "deny", "link/f")
        assert not can_read(view / "link/f")
        yolofs("rule", "deny", "out/x")
        assert learned(yolofs) == {"secret/f": "deny", f"{tmp_path}/outside/x": "deny"}
        assert "round/x: Too many levels of symbolic links" in yolofs.refused("rule", "deny", "round/x", code=2)
        yolofs("rule", "deny", "nowhere/at/all")
        yolofs("rule", "unset", "link/f")
        assert learned(yolofs).keys() == {f"{tmp_path}/outside/x", "nowhere/at/all"}


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
@pytest.mark.some(2)
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
        replace_text(path, "[rules]\ndir = 3\n")
        wait_until(lambda: "rules.toml:2" in yolofs("rule", "list").err, "the warning")
        assert "deny       dir" in yolofs("rule", "list").out
        message = yolofs.refused("rule", "allow", "dir", code=3)
        assert message.startswith("yolofs: .yolofs/rules.toml:2: rules.dir: expected")
        assert path.read_text() == "[rules]\ndir = 3\n"
    assert yolofs.refused("rule", "list", code=3).startswith("yolofs: .yolofs/rules.toml:2: rules.dir: expected")


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


def test_a_name_with_spaces_at_its_ends_is_listed_so_that_they_are_seen(yolofs: Program) -> None:
    assert '" end " is deny now' in yolofs("rule", "deny", " end ").err
    assert '" end "' in yolofs("rule", "list").out
    yolofs("rule", "unset", " end ")


def test_a_list_without_rules_of_the_users_own_says_so(tmp_path: Path) -> None:
    project = tmp_path / "p"
    project.mkdir()
    program = Program(project)
    program.start_session()
    assert re.fullmatch(
        r"no rules of your own; \d{3} built-in rules: yolofs rule list --all\n", program("rule", "list").err
    )
