"""What a user reads when ``.yolofs.toml`` is wrong, and what the program gets when it is right."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from yolofs.config.load import keep_of, load, load_file, parse, parse_table
from yolofs.config.settings import (
    DiffSettings,
    KeepCommits,
    MountSettings,
    RuleLine,
    RunSettings,
    Settings,
    UserSettings,
)
from yolofs.errors import ConfigError


def test_no_file_means_the_defaults(tmp_path: Path) -> None:
    assert load(str(tmp_path)) == Settings.defaults()


def test_the_project_may_be_given_as_bytes(tmp_path: Path) -> None:
    (tmp_path / ".yolofs.toml").write_text('root = "src"')
    assert load(bytes(tmp_path)).root == "src"


def test_every_key_can_be_set() -> None:
    settings = parse(
        b"""
        root = "~/work"
        ask_timeout = 5
        ask_default = "allow"
        preset = "none"
        run = { network = "none", hide_env = ["A"], keep_env = ["*_B"] }
        diff.context = 0
        diff.max_text_bytes = 1_000
        mount = { allow_other = true, base_timeout = 0, staged_timeout = 2.5, xattrs = true, \
spin_us = 0, switch_interval_ms = 5, max_fds = 100 }
        [rules]
        src = "allow"
        "**/*.pem" = "hidden"
        """
    )
    assert settings == Settings(
        root="~/work",
        ask_timeout=5.0,
        ask_default="allow",
        preset="none",
        run=RunSettings(network="none", hide_env=("A",), keep_env=("*_B",)),
        diff=DiffSettings(context=0, max_text_bytes=1000),
        mount=MountSettings(
            allow_other=True,
            base_timeout=0.0,
            staged_timeout=2.5,
            xattrs=True,
            spin_us=0,
            switch_interval_ms=5.0,
            max_fds=100,
        ),
        rules=(RuleLine("src", "allow", 11), RuleLine("**/*.pem", "hidden", 12)),
    )


def test_a_file_with_windows_line_ends_is_read() -> None:
    assert parse(b"[mount]\r\nspin_us = 7\r\n").mount.spin_us == 7


TOP = (
    "known here: root, ask_timeout, ask_unattended, ask_default, preset, scratch, host_code, mount, run, diff, "
    "keep_commits, rules"
)
SECONDS = "expected a number of seconds from 0 to 10000000"
SPIN = "mount.spin_us: expected a whole number of microseconds from 0 to 1000"
MAX_FDS = "mount.max_fds: expected a whole number from 16 to 1000000"
NOT_AWAKE = "there is no such setting any more: idle CPUs are left alone; remove this line"
STATES = 'expected "allow", "read-only", "write-ask", "ask", "deny" or "hidden"'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # unknown keys
        (
            "[mount]\n\nbase_timeuot = 1",
            ':3: mount.base_timeuot: unknown key; did you mean "base_timeout"?',
        ),
        ("[mont]", ':1: mont: unknown key; did you mean "mount"?'),
        ("a = 1\nb = 2", f":1: a: unknown key; {TOP}"),
        ("# x\n[foo.bar]\nbaz = 1", f":2: foo: unknown key; {TOP}"),
        ('"a\\nb" = 1', f':1: "a\\nb": unknown key; {TOP}'),
        ("mount.Spin_Us = 3", ':1: mount.Spin_Us: unknown key; did you mean "spin_us"?'),
        ("[[diff]]\ncontext = 1", ":1: diff: expected a table, got an array"),
        # keys that were taken out
        ("[mount]\nkeep_awake = true", f":2: mount.keep_awake: {NOT_AWAKE}"),
        ("mount.keep_awake = []", f":1: mount.keep_awake: {NOT_AWAKE}"),
        # known keys in the wrong table
        ("context = 1", ":1: context: unknown key; did you mean context in [diff]?"),
        ("[diff]\nroot = 1", ":2: diff.root: unknown key; did you mean root above the first [table]?"),
        # keys of the user's own file
        ("notify = 'x'", ":1: notify: unknown key; your own config.toml has it above the first [table]"),
        # wrong types
        ('ask_timeout = "1m"', f':1: ask_timeout: {SECONDS}, got "1m"'),
        ("ask_timeout = true", f":1: ask_timeout: {SECONDS}, got true"),
        ("root = 1979-05-27", ":1: root: expected a string that is not empty, got 1979-05-27"),
        ("root = {}", ":1: root: expected a string that is not empty, got a table"),
        ("mount = 1", ":1: mount: expected a table, got 1"),
        ("mount.xattrs = 0", ':1: mount.xattrs: expected true, false or "auto", got 0'),
        ("mount.spin_us = 1.5", f":1: {SPIN}, got 1.5"),
        ("mount.spin_us = true", f":1: {SPIN}, got true"),
        ('rules = "x"', ':1: rules: expected a table, got "x"'),
        # out of range
        ("ask_timeout = nan", f":1: ask_timeout: {SECONDS}, got nan"),
        ("ask_timeout = inf", f":1: ask_timeout: {SECONDS}, got inf"),
        ("[diff]\ncontext = -1", ":2: diff.context: expected a whole number of lines from 0 to 1000000, got -1"),
        ('root = ""', ':1: root: expected a string that is not empty, got ""'),
        (f"mount.max_fds = 0x{'f' * 5000}", f":1: {MAX_FDS}, got a number of 20000 bits"),
        # wrong words
        ('ask_default = "alow"', ':1: ask_default: expected "deny" or "allow", got "alow"; did you mean "allow"?'),
        (
            'mount.allow_other = "Auto"',
            ':1: mount.allow_other: expected true, false or "auto", got "Auto"; did you mean "auto"?',
        ),
        ('[rules]\n"../x" = "readonly"', f':2: rules."../x": {STATES}, got "readonly"; did you mean "read-only"?'),
        ("[rules]\nsrc = 7", f":2: rules.src: {STATES}, got 7"),
        # a setting below the rules, as whoever adds a line at the end of the file writes it
        (
            "[rules]\nask_timeout = 4",
            f":2: rules.ask_timeout: {STATES}, got 4; did you mean ask_timeout above the first [table]?",
        ),
        ("[rules]\nspin_us = 4", f":2: rules.spin_us: {STATES}, got 4; did you mean spin_us in [mount]?"),
        # values over several lines, and long ones
        ('[mount]\nspin_us = """\nfoo\nbar"""\n', f':2: {SPIN}, got "foo\\nbar"'),
        (f'ask_default = "{"x" * 70}"', f':1: ask_default: expected "deny" or "allow", got "{"x" * 60}…"'),
        # not TOML
        ("root = /", ":1: not TOML: Invalid value (column 8)"),
        ("root = 'a'\nroot = 'b'\n\n[diff]", ":2: not TOML: Cannot overwrite a value (column 11)"),
        ("root = '/'\nx = [1,", ":2: not TOML: Invalid value at the end of the file"),
        (f"x = {'9' * 5000}", ": not TOML: a number has thousands of digits"),
        # no path has it
        ('\nroot = "/a\\u0000b"', ":2: \\u0000 is a zero byte, which no path and no name has"),
        ('[rules]\n"a\\U00000000" = "ask"', ":2: \\U00000000 is a zero byte, which no path and no name has"),
        ('scratch = ["a", "b\\u0000"]', ":1: \\u0000 is a zero byte, which no path and no name has"),
    ],
)
def test_a_mistake_in_the_settings_is_told_in_one_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text.encode())
    assert caught.value.message == f".yolofs.toml{message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ask_unattended = 1", "ask_unattended: unknown key; a project's .yolofs.toml has it above the first [table]"),
        ("base_timeout = 1", "base_timeout: unknown key; a project's .yolofs.toml has it in [mount]"),
        ("notfy = 'x'", 'notfy: unknown key; did you mean "notify"?'),
    ],
)
def test_a_setting_of_projects_in_the_users_own_file_is_sent_there(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_table(text.encode(), "the user's", UserSettings)
    assert caught.value.message == f"the user's:1: {message}"


def test_an_escape_in_a_literal_string_is_no_zero_byte() -> None:
    assert parse(rb"scratch = ['a\u0000']").scratch == (r"a\u0000",)


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    with pytest.raises(ConfigError, match=r"\A\.yolofs\.toml: not TOML: nested too deeply\Z"):
        parse(b"x = " + b"[" * 100_000)


def test_bytes_that_are_not_utf8_are_told_with_their_line(tmp_path: Path) -> None:
    (tmp_path / ".yolofs.toml").write_bytes(b'root = "/"\n# caf\xe9\n')
    with pytest.raises(ConfigError, match=r"\A\.yolofs\.toml:2: not UTF-8: byte 0xe9\Z"):
        load(str(tmp_path))


def test_a_directory_in_the_files_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".yolofs.toml").mkdir()
    with pytest.raises(ConfigError, match=r"\A\.yolofs\.toml: cannot be read: it is a directory\Z"):
        load(str(tmp_path))


def test_a_fifo_in_the_files_place_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".yolofs.toml")
    with pytest.raises(ConfigError, match=r"\A\.yolofs\.toml: cannot be read: it is not a regular file\Z"):
        load(str(tmp_path))


def test_the_null_device_is_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / ".yolofs.toml").symlink_to("/dev/null")
    assert load(str(tmp_path)) == Settings()


def test_a_file_without_an_end_is_not_read(tmp_path: Path) -> None:
    (tmp_path / ".yolofs.toml").symlink_to("/dev/zero")
    with pytest.raises(ConfigError, match=r"\A\.yolofs\.toml: cannot be read: it is not a regular file\Z"):
        load(str(tmp_path))


def test_a_file_that_nobody_has_written_by_hand_is_not_read_whole(tmp_path: Path) -> None:
    with open(tmp_path / ".yolofs.toml", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ConfigError, match=r"\A\.yolofs\.toml: cannot be read: it has more than 64 MiB\Z"):
        load(str(tmp_path))


def test_a_link_that_leads_nowhere_is_an_error(tmp_path: Path) -> None:
    """There are settings, elsewhere: that they cannot be found must not mean that nothing is
    guarded.
    """
    (tmp_path / ".yolofs.toml").symlink_to("elsewhere")
    with pytest.raises(ConfigError, match=r"\.yolofs\.toml: cannot be read: /.*/\.yolofs\.toml is a link to what does"):
        load(str(tmp_path))
    (tmp_path / "elsewhere").write_text('root = "/x"\n')
    assert load(str(tmp_path)).root == "/x"


def test_a_directory_of_settings_that_leads_nowhere_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "config").symlink_to(tmp_path / "dotfiles")
    user = os.fsencode(tmp_path / "config/yolofs/config.toml")
    with pytest.raises(ConfigError, match=r"the user's: cannot be read: /.*/config is a link to what does not exist"):
        load_file(user, "the user's", UserSettings)
    (tmp_path / "dotfiles").mkdir()
    assert load_file(user, "the user's", UserSettings) == UserSettings()


def test_the_users_own_file_says_how_long_commits_are_kept_and_a_project_may_say_more() -> None:
    own = parse_table(b"[keep_commits]\ncount = 5\ndays = 90\n", "the user's", UserSettings).keep_commits
    assert keep_of(KeepCommits(), own) == KeepCommits(5, 90.0, 5.0)
    assert keep_of(KeepCommits(count=50, days=60.0), own) == KeepCommits(50, 90.0, 5.0)
    assert keep_of(KeepCommits(count=2), own) == KeepCommits(2, 90.0, 5.0)  # which was agreed to
