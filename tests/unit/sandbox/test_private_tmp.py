"""Which of /tmp and /var/tmp a run gets as its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

import pytest

from yolofs.config.settings import RuleLine, StateWord
from yolofs.rules import Level, Sources, parse_rules
from yolofs.sandbox import private_tmp
from yolofs.sandbox.private_tmp import TmpChoice, choose

PRESET: tuple[tuple[str, StateWord], ...] = (
    ("/tmp/**", "allow"),
    ("/var/tmp/**", "allow"),
    ("/tmp/krb5cc_0", "hidden"),
    ("/usr/**", "read-only"),
)


@pytest.fixture
def tops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, bytes]:
    """Return two directories that stand for /tmp and /var/tmp, so that something may lie in
    them.
    """
    found = bytes(tmp_path / "tmp"), bytes(tmp_path / "var/tmp")
    for path in ("tmp/x/project/sub", "tmp/x/other", "var/tmp", "home/project", "opt/python"):
        (tmp_path / path).mkdir(parents=True)
    monkeypatch.setattr(private_tmp, "TMP_DIRECTORIES", found)
    return found


def sources(tmp_path: Path, **levels: Sequence[tuple[str, StateWord]]) -> Sources:
    """Return rules whose keys begin with ``=`` for the directory of the test."""
    preset = [(f"={key}" if key.startswith(("/tmp", "/var/tmp")) else key, state) for key, state in PRESET]
    by_level = {}
    for name, lines in {"preset": preset, **levels}.items():
        rules = [RuleLine(key.replace("=", str(tmp_path), 1), state, None) for key, state in lines]
        by_level[Level(name)] = parse_rules(tuple(rules), b"/", b"/", file_name=name)
    return Sources(MappingProxyType(by_level))


def chosen(tmp_path: Path, where: str, home: str = "home", **levels: Sequence[tuple[str, StateWord]]) -> TmpChoice:
    places = bytes(tmp_path / where), bytes(tmp_path / home)
    return choose(sources(tmp_path, **levels), places, [bytes(tmp_path / "opt/python")])


def test_tmp_and_var_tmp_are_private_and_show_nothing_of_the_view(tmp_path: Path, tops: tuple[bytes, bytes]) -> None:
    assert chosen(tmp_path, "home/project") == TmpChoice(tops)


def test_a_project_in_tmp_is_shown(tmp_path: Path, tops: tuple[bytes, bytes]) -> None:
    assert chosen(tmp_path, "tmp/x/project") == TmpChoice(tops, (bytes(tmp_path / "tmp/x/project"),))


def test_of_a_home_in_tmp_and_its_project_the_home_is_shown(tmp_path: Path, tops: tuple[bytes, bytes]) -> None:
    assert chosen(tmp_path, "tmp/x/project", "tmp/x") == TmpChoice(tops, (bytes(tmp_path / "tmp/x"),))


@pytest.mark.parametrize(("project", "home"), [("tmp", "home"), ("home/project", "tmp")])
def test_a_tmp_that_is_the_project_or_the_home_is_the_views(
    tmp_path: Path, tops: tuple[bytes, bytes], project: str, home: str
) -> None:
    assert chosen(tmp_path, project, home) == TmpChoice(tops[1:])


def test_a_project_around_both_tmps_has_them_from_the_view(tmp_path: Path, tops: tuple[bytes, bytes]) -> None:
    assert chosen(tmp_path, ".") == TmpChoice()


def test_a_home_of_root_itself_is_around_both_tmps(tmp_path: Path, tops: tuple[bytes, bytes]) -> None:
    assert choose(sources(tmp_path), [bytes(tmp_path / "home/project"), b"/"], []) == TmpChoice()


def test_a_tmp_that_is_a_link_is_not_private(tmp_path: Path, tops: tuple[bytes, bytes]) -> None:
    (tmp_path / "var/tmp").rmdir()
    (tmp_path / "var/tmp").symlink_to("../tmp")
    assert chosen(tmp_path, "home/project") == TmpChoice(tops[:1])


def test_where_yolofs_runs_from_is_shown(tmp_path: Path, tops: tuple[bytes, bytes]) -> None:
    installed = [bytes(tmp_path / path) for path in ("tmp/x/other", "opt/python", "tmp/gone")]
    found = choose(sources(tmp_path), [bytes(tmp_path / "home/project"), bytes(tmp_path / "home")], installed)
    assert found == TmpChoice(tops, (bytes(tmp_path / "tmp/x/other"),))


@pytest.mark.parametrize("level", ["user", "learned", "session"])
@pytest.mark.parametrize("key", ["=/tmp/shared", "=/tmp", "=/tmp/**", "=/tmp/**/*.sock", "=/tmp/a/b/**/name"])
def test_a_rule_of_the_users_own_in_there_makes_it_the_views(
    tmp_path: Path, tops: tuple[bytes, bytes], level: str, key: str
) -> None:
    lines: list[tuple[str, StateWord]] = [(key, "allow")]
    found = chosen(tmp_path, "home/project", "home", **{level: lines})
    assert found.private == tops[1:]
    assert [(one.directory, one.source[: len(level)]) for one in found.ruled] == [(tops[0], level)]


def test_a_rule_about_the_project_in_tmp_leaves_tmp_private(tmp_path: Path, tops: tuple[bytes, bytes]) -> None:
    found = chosen(tmp_path, "tmp/x/project", learned=[("=/tmp/x/project/sub", "read-only")])
    assert found == TmpChoice(tops, (bytes(tmp_path / "tmp/x/project"),))


def test_a_rule_for_names_anywhere_leaves_tmp_private(tmp_path: Path, tops: tuple[bytes, bytes]) -> None:
    assert chosen(tmp_path, "home/project", user=[("**/*.sock", "deny")]) == TmpChoice(tops)


@pytest.mark.parametrize("key", ["=/tmp/shared", "=/tmp", "=/tmp/**"])
@pytest.mark.parametrize("state", ["deny", "read-only", "allow"])
def test_a_rule_of_the_tree_cannot_open_what_the_host_has_there(
    tmp_path: Path, tops: tuple[bytes, bytes], key: str, state: StateWord
) -> None:
    """It holds at once where it tightens, and nobody has agreed to it."""
    assert chosen(tmp_path, "home/project", project=[(key, state)]) == TmpChoice(tops)


def test_without_the_built_in_rules_both_are_the_views(tmp_path: Path, tops: tuple[bytes, bytes]) -> None:
    assert chosen(tmp_path, "home/project", preset=[]) == TmpChoice()


def test_a_rule_for_all_that_closes_them_counts(tmp_path: Path, tops: tuple[bytes, bytes]) -> None:
    assert chosen(tmp_path, "home/project", preset=[], user=[("/", "read-only")]) == TmpChoice()
    assert chosen(tmp_path, "home/project", preset=[], user=[("/", "allow")]) == TmpChoice(tops)
