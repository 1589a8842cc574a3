"""Rules from real files: which source counts, what a broken file does, and how learned rules are
kept.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.fault_points import points
from yolofs.errors import ConfigError
from yolofs.rules import Level, NameRule, PathRule, RuleBook, RuleSet, RuleState
from yolofs.rules.rule_files import RuleFiles

ALLOW, DENY, HIDDEN = RuleState.ALLOW, RuleState.DENY, RuleState.HIDDEN


class Place:
    """A project with its session and a home directory, all real."""

    def __init__(self, path: Path) -> None:
        self.home, self.project = path / "home", path / "home/project"
        self.directory = self.project / ".yolofs"
        self.directory.mkdir(parents=True)
        self.config = self.home / ".config/yolofs/config.toml"
        self.config.parent.mkdir(parents=True)
        self.files = self.read()

    def read(self) -> RuleFiles:
        files = RuleFiles(bytes(self.project), bytes(self.directory), bytes(self.home))
        files.load()
        return files

    def write(self, level: Level, text: str) -> None:
        Path(os.fsdecode(self.files.paths[level])).write_text(text)

    def decide(self, path: Path | str, answers: RuleSet = RuleSet()) -> tuple[str, str]:  # noqa: B008 - it is frozen
        """Return the state over a path, and where the deciding rule is written."""
        rule = RuleBook(*self.files.sources(answers).sets()).at(os.fsencode(path)).rule
        assert rule is not None
        return rule.state.value, rule.source


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return Place(tmp_path)


def test_of_rules_for_one_path_that_of_the_nearest_level_decides(place: Place) -> None:
    path = place.project / "x"
    assert place.decide(path) == ("allow", "built-in: The project")
    expected = []
    place.write(Level.USER, f'[rules]\n"{path}" = "ask"\n')
    expected.append(("ask", f"{place.config}:2"))
    place.files.reload()
    assert place.decide(path) == expected[-1]
    place.write(Level.PROJECT, '[rules]\nx = "deny"\n')
    place.files.reload()
    assert place.decide(path) == ("deny", ".yolofs.toml:2")
    place.files.learn(PathRule(bytes(path), RuleState.READ_ONLY, ""))
    state, source = place.decide(path)
    assert (state, source.rpartition(":")[0]) == ("read-only", ".yolofs/rules.toml")
    answers = RuleSet((PathRule(bytes(path), RuleState.WRITE_ASK, "an answer"),))
    assert place.decide(path, answers) == ("write-ask", "an answer")


@pytest.mark.parametrize(
    ("project", "user", "is_in_force"),
    [
        ("", "", True),
        ("", 'preset = "none"', False),
        ('preset = "auto"', 'preset = "none"', False),
        ('preset = "standard"', 'preset = "none"', True),
        ('preset = "none"', "", False),
        ('preset = "none"', 'preset = "standard"', False),
    ],
)
def test_the_preset_can_be_switched_off_by_either_file(
    place: Place, project: str, user: str, is_in_force: bool
) -> None:
    place.write(Level.PROJECT, project)
    place.write(Level.USER, user)
    place.files.load()
    place.files.agree(place.files.lines_to_agree_to())
    assert bool(place.files.sources().by_level[Level.PRESET].rules) == is_in_force


def test_what_the_project_opens_counts_once_the_user_has_agreed_to_it(place: Place) -> None:
    path = place.home / ".ssh"
    place.write(Level.PROJECT, '[rules]\n"~/.ssh" = "allow"\n"a" = "deny"\n')
    place.files.load()
    assert place.decide(path)[0] == "hidden"
    assert place.decide(place.project / "a") == ("deny", ".yolofs.toml:3")
    (waits,) = place.files.lines_to_agree_to()
    assert (waits.line, waits.shown) == (2, '"~/.ssh" = "allow"')
    place.files.agree([waits])
    assert place.decide(path) == ("allow", ".yolofs.toml:2")
    again = place.read()
    assert again.sources().waiting == ()
    assert place.read().sources().sets() == place.files.sources().sets()


def test_the_users_file_lies_where_xdg_says(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other/yolofs/config.toml"
    other.parent.mkdir(parents=True)
    other.write_text('[rules]\n"/x" = "deny"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "other"))
    place.files = place.read()
    assert place.decide("/x") == ("deny", f"{other}:2")
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert place.read().paths[Level.USER] == bytes(place.config)


LAST = "run, keep_commits, rules"


@pytest.mark.parametrize(
    ("level", "text", "message"),
    [
        (
            Level.USER,
            '[rules]\nsrc = "deny"\n',
            "expected an absolute path or one below ~: this file is not about one project",
        ),
        (
            Level.USER,
            "[rules]\n'./**/x' = 'deny'\n",
            "expected an absolute path or one below ~: this file is not about one project",
        ),
        (
            Level.USER,
            "colour = 3\n",
            f"colour: unknown key; known here: preset, state, safe_directories, host_code, notify, {LAST}",
        ),
        (
            Level.USER,
            "ask_timeout = 3\n",
            "ask_timeout: unknown key; a project's .yolofs.toml has it above the first [table]",
        ),
        (Level.USER, 'preset = "auto"\n', 'preset: expected "standard" or "none", got "auto"'),
        (Level.USER, 'presets = "none"\n', 'presets: unknown key; did you mean "preset"?'),
        (Level.PROJECT, '[rules]\n"../x" = "deny"\n', "climbs out of the project"),
        (
            Level.PROJECT,
            'preset = "non"\n',
            'preset: expected "auto", "standard" or "none", got "non"; did you mean "none"?',
        ),
        (Level.LEARNED, "colour = 3\n", "colour: unknown key; known here: rules"),
        (
            Level.LEARNED,
            'preset = "none"\n',
            "preset: unknown key; a project's .yolofs.toml has it above the first [table]",
        ),
        (Level.LEARNED, '[rules]\nx = "den"\n', 'did you mean "deny"?'),
    ],
)
def test_a_broken_file_is_told_and_leaves_its_old_rules_in_force(
    place: Place, level: Level, text: str, message: str
) -> None:
    place.write(level, '[rules]\n"/x" = "hidden"\n')
    assert place.files.reload()
    place.write(level, text)
    assert place.files.reload()
    assert place.decide("/x")[0] == "hidden"
    (problem,) = place.files.problems.values()
    assert message in problem
    with pytest.raises(ConfigError) as caught:
        place.read()
    assert caught.value.message == problem
    assert not place.files.reload(), "nothing is new"
    place.write(level, '[rules]\n"/x" = "deny"\n')
    assert place.files.reload()
    assert place.files.problems == {}
    assert place.decide("/x")[0] == "deny"


def test_a_file_that_is_gone_has_no_rules(place: Place) -> None:
    place.write(Level.PROJECT, '[rules]\n"/x" = "hidden"\n')
    place.files.reload()
    (place.project / ".yolofs.toml").unlink()
    assert place.files.reload()
    assert place.decide("/x") == ("ask", "built-in: Everything else")


def test_a_rule_whose_path_is_a_link_is_in_force_behind_it_too(place: Place, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (place.home / ".ssh").symlink_to(tmp_path / "data")
    assert place.decide(tmp_path / "data/id") == ("hidden", "built-in: Credentials")
    assert place.decide(place.home / ".ssh") == ("hidden", "built-in: Credentials")


def test_an_answer_for_this_session_is_about_a_link_and_not_about_where_it_leads(place: Place) -> None:
    """Whoever may remove a link has not been given what it leads to."""
    link = place.home / "link"
    link.symlink_to(place.home / ".ssh")
    answers = RuleSet((PathRule(bytes(link), ALLOW, "an answer"),))
    assert place.decide(link, answers) == ("allow", "an answer")
    assert place.decide(place.home / ".ssh/id", answers) == ("hidden", "built-in: Credentials")


def test_a_link_in_the_project_opens_nothing_outside(place: Place, tmp_path: Path) -> None:
    (place.project / "out").symlink_to(place.home / ".ssh")
    place.write(Level.PROJECT, '[rules]\nout = "allow"\n')
    place.files.reload()
    assert place.decide(place.home / ".ssh/id") == ("hidden", "built-in: Credentials")
    (note,) = place.files.sources().notes
    assert "allow is not in force there" in note


def test_no_program_may_change_the_users_file_wherever_a_link_leads(place: Place) -> None:
    """A dotfile manager links the file, and works in the project that holds it."""
    kept = place.project / "kept.toml"
    place.config.symlink_to(kept)
    kept.touch()
    for path in (kept, place.config, place.config.parent / "other"):
        assert place.decide(path) == ("read-only", "built-in: What governs yolofs")
    assert place.decide(place.project / "other")[0] == "allow"


@pytest.mark.parametrize("there", ["project/settings", ".cache/c", "project/x/../settings", "./.cache//c/"])
def test_no_program_may_change_the_users_file_wherever_it_is(
    place: Place, monkeypatch: pytest.MonkeyPatch, there: str
) -> None:
    (place.project / "x").mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", f"{place.home}/{there}")
    place.files = place.read()
    directory = Path(os.path.normpath(place.home / there / "yolofs"))
    for path in (directory, directory / "config.toml", place.config):
        assert place.decide(path) == ("read-only", "built-in: What governs yolofs")


# ---- learned rules


def test_learned_rules_are_kept_and_replaced_and_forgotten(place: Place) -> None:
    place.write(Level.LEARNED, '[rules]\n"./x/" = "ask"\n"/etc" = "deny"\n')
    place.files.learn(PathRule(bytes(place.project / "x"), ALLOW, ""))
    place.files.learn(NameRule(b"secret", HIDDEN, "", is_whole=True))
    path = place.directory / "rules.toml"
    assert tomllib.loads(path.read_text()) == {"rules": {"x": "allow", "/etc": "deny", "**/secret/**": "hidden"}}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert place.decide(place.project / "x")[0] == "allow"
    assert place.decide("/a/secret")[0] == "hidden"
    assert place.files.forget(NameRule(b"secret", ALLOW, ""))
    assert not place.files.forget(NameRule(b"secret", ALLOW, ""))
    assert place.files.forget(PathRule(b"/etc", ALLOW, ""))
    assert tomllib.loads(path.read_text()) == {"rules": {"x": "allow"}}
    assert not path.with_name("rules.toml.new").exists()


@pytest.mark.parametrize(
    "name", [b"a*b", b"**", b"new\nline", b'"', b"\xff\xfe", b"~", b"caf\xc3\xa9", b"#[x]", b"\x7f", b"%41"]
)
def test_a_path_of_any_bytes_can_be_learned(place: Place, name: bytes) -> None:
    inside, outside = os.path.join(bytes(place.project), name), b"/data/" + name
    place.files.learn(PathRule(inside, DENY, ""))
    place.files.learn(PathRule(outside, DENY, ""))
    found = place.read().sources().by_level[Level.LEARNED].rules
    assert [rule.path for rule in found if isinstance(rule, PathRule)] == [inside, outside]
    assert place.files.forget(PathRule(inside, ALLOW, ""))
    assert place.files.forget(PathRule(outside, ALLOW, ""))
    assert place.read().sources().by_level[Level.LEARNED] == RuleSet()


def test_a_pattern_that_toml_cannot_hold_is_refused(place: Place) -> None:
    with pytest.raises(ConfigError, match="a pattern has to be UTF-8"):
        place.files.learn(NameRule(b"\xff", DENY, ""))


def test_several_rules_are_learned_in_one_step(place: Place) -> None:
    """An answer to a group makes hundreds: to write the file for each takes seconds, and we may be
    ended meanwhile.
    """
    place.write(Level.LEARNED, '[rules]\n"./x/" = "ask"\n"/etc" = "deny"\n')
    path = place.directory / "rules.toml"
    before = path.read_text()
    with pytest.raises(ConfigError):
        place.files.learn(PathRule(b"/y", ALLOW, ""), NameRule(b"\xff", DENY, ""))
    assert path.read_text() == before
    new = [f"/y/{number}" for number in range(300)]
    rules = [PathRule(bytes(place.project / "x"), ALLOW, ""), *(PathRule(one.encode(), ALLOW, "") for one in new)]
    place.files.learn(*rules)
    assert tomllib.loads(path.read_text())["rules"] == {"x": "allow", "/etc": "deny"} | dict.fromkeys(new, "allow")


def test_a_broken_file_of_learned_rules_is_not_written_over(place: Place) -> None:
    place.write(Level.LEARNED, "[rules]\nx = 1\n")
    with pytest.raises(ConfigError) as caught:
        place.files.learn(PathRule(b"/y", DENY, ""))
    assert caught.value.message.startswith(".yolofs/rules.toml:2: rules.x: expected")
    assert caught.value.hint
    assert (place.directory / "rules.toml").read_text() == "[rules]\nx = 1\n"


LEARN = """
import sys
from yolofs.rules.rule_files import RuleFiles
from yolofs.rules import PathRule, RuleState
files = RuleFiles(*map(str.encode, sys.argv[1:4]))
for number in range(50):
    files.learn(PathRule(b"/x/%s/%d" % (sys.argv[4].encode(), number), RuleState.DENY, ""))
"""


def test_writers_at_the_same_time_lose_nothing(place: Place) -> None:
    words = [sys.executable, "-c", LEARN, *map(str, (place.project, place.directory, place.home))]
    writers = [subprocess.Popen([*words, name]) for name in "abc"]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    rules = place.read().sources().by_level[Level.LEARNED].rules
    assert {rule.path for rule in rules if isinstance(rule, PathRule)} == {
        b"/x/%s/%d" % (name, number) for name in (b"a", b"b", b"c") for number in range(50)
    }


def test_what_a_killed_writer_leaves_is_not_in_the_way(place: Place) -> None:
    (place.directory / "rules.toml.new").write_text("half a fi")
    place.files.learn(PathRule(b"/y", DENY, ""))
    assert place.decide("/y")[0] == "deny"


def test_what_all_rules_hide_the_few_that_are_near_hide_too_and_no_ordinary_file(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a home directory that lies where those of others are hidden, and over links."""
    (place.home / "vault/deep").mkdir(parents=True)
    (place.home / ".ssh").symlink_to("vault")
    (place.project / "in").symlink_to("src")
    (place.project / "out").symlink_to(tmp_path / "elsewhere")
    linked_home = tmp_path / "linked"
    linked_home.symlink_to(place.home)
    place.write(
        Level.USER,
        f'[rules]\n"{tmp_path}" = "hidden"\n"~/open" = "hidden"\n"~/open/one" = "allow"\n"**/*.key" = "hidden"\n',
    )
    place.write(
        Level.PROJECT,
        '[rules]\n"in/x" = "hidden"\n"out" = "hidden"\n"secret/**" = "hidden"\n"secret/shown" = "allow"\n'
        '"**/token" = "hidden"\n',
    )
    names = ["", "x", "src/x", "in/x/y", "src/x/y", "secret", "secret/a", "secret/shown", "secret/shown/a", "token"]
    names += ["token/a", "a.key", "node_modules/a.key", "node_modules/token", ".env", "sub/.env", "sub/.env.local/a"]
    paths = [place.project / name for name in names]
    paths += [place.home / name for name in ("vault", "vault/deep/a", ".ssh/a", ".bashrc", "open", "open/one/a")]
    paths += [tmp_path / name for name in ("", "elsewhere/a", "other/a", "linked/project/x", "linked/vault/a")]
    for home in (place.home, linked_home):
        files = RuleFiles(bytes(place.project), bytes(place.directory), bytes(home))
        files.load()
        rules = files.sources()
        hiding = {rule for one in rules.sets() for rule in one.rules if rule.state is HIDDEN}
        tried = {bytes(path) for path in paths}
        tried |= {rule.path + below for rule in hiding if isinstance(rule, PathRule) for below in (b"", b"/a")}
        book = RuleBook(*rules.sets())
        hidden = {path for path in tried if book.at(path).seems_absent}
        near_all = RuleBook(*files.hiding_near(tried))
        assert {path for path in hidden if not near_all.at(path).seems_absent} == set()
        for path in points(sorted(hidden), "near", some=20):
            assert RuleBook(*files.hiding_near([path])).at(path).seems_absent
        assert len(hidden) > 100
    shown = [bytes(place.project / "src/main.py"), bytes(place.home / ".bashrc")]
    assert not any(RuleBook(*files.hiding_near(shown)).at(path).seems_absent for path in shown)
