"""Ways around a rule that lead over other paths: links, renamed and replaced directories,
travels.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.gate_tools import (
    EXCHANGE,
    Answers,
    Mounter,
    at,
    book,
    path_rule,
    path_to,
    refused,
    renameat2,
    replace_rules,
)
from yolofs.access.questions import Decision, Operation
from yolofs.rules import NameRule, PathRule, Rule, RuleBook, RuleSet, RuleState, SuffixRule

pytestmark = pytest.mark.mount
PEM = SuffixRule(b".pem", RuleState.DENY, "test:2")


# ---- directories above a rule's path


@pytest.mark.parametrize("state", [RuleState.READ_ONLY, RuleState.ASK, RuleState.DENY, RuleState.HIDDEN])
def test_no_link_takes_the_place_of_a_directory_above_a_rule(base: Path, mounted: Mounter, state: RuleState) -> None:
    (base / "evil/hooks").mkdir(parents=True)
    (base / "link").symlink_to("evil")
    view = mounted(book=book(base, path_rule(base, "git/hooks", state)), asker=(answers := Answers()))
    with refused():
        os.symlink("evil", at(view, "git"))
    with refused():
        os.rename(at(view, "link"), at(view, "git"))
    with refused():
        os.link(at(view, "link"), at(view, "git"), follow_symlinks=False)
    os.mkdir(at(view, "git"))
    with refused():
        renameat2(at(view, "link"), at(view, "git"), EXCHANGE)
    assert [question.path for question in answers.refusals] == [os.fsencode(base / "git")] * 4
    assert {question.rule for question in answers.refusals} == {path_rule(base, "git/hooks", state)}


def test_a_link_on_the_way_to_a_rules_path_stays_where_it_is(base: Path, mounted: Mounter) -> None:
    (base / "real").mkdir()
    (base / "real/key").write_text("key")
    (base / "way").symlink_to("real")
    rules = [path_rule(base, path, RuleState.READ_ONLY) for path in ("way/key", "real/key")]
    view = mounted(book=book(base, *rules))
    with refused():
        os.unlink(at(view, "way"))
    with refused():
        os.rename(at(view, "way"), at(view, "other"))
    Path(at(view, "file")).write_text("x")
    with refused():
        os.rename(at(view, "file"), at(view, "way"))
    assert Path(at(view, "way/key")).read_text() == "key"


@pytest.mark.parametrize("state", [RuleState.READ_ONLY, RuleState.ASK, RuleState.DENY, RuleState.HIDDEN])
def test_the_directory_of_a_pattern_is_no_link_that_comes_or_goes(
    base: Path, mounted: Mounter, state: RuleState
) -> None:
    for name in ("evil", "git"):
        (base / name).mkdir()
    (base / "link").symlink_to("evil")
    (base / "way").symlink_to("evil")
    patterns = [NameRule(b"hooks", state, "test:1", os.fsencode(base / name)) for name in ("git", "new", "way")]
    view = mounted(book=book(base, *patterns), asker=(answers := Answers()))
    acts: tuple[Callable[[], object], ...] = (
        lambda: os.symlink("evil", at(view, "new")),
        lambda: os.link(at(view, "link"), at(view, "new"), follow_symlinks=False),
        lambda: os.rename(at(view, "link"), at(view, "new")),
        lambda: renameat2(at(view, "link"), at(view, "git"), EXCHANGE),
        lambda: os.unlink(at(view, "way")),
        lambda: os.rename(at(view, "way"), at(view, "other")),
    )
    for act in acts:
        with refused():
            act()
    paths = [question.path[len(os.fsencode(base)) + 1 :] for question in answers.refusals]
    assert paths == [b"new", b"new", b"new", b"git", b"way", b"way"]
    os.mkdir(at(view, "new"))
    os.rmdir(at(view, "new"))
    os.rmdir(at(view, "git"))


def test_files_may_come_and_go_where_only_a_directory_would_matter(base: Path, mounted: Mounter) -> None:
    view = mounted(book=book(base, path_rule(base, "git/hooks", RuleState.READ_ONLY)))
    Path(at(view, "git")).write_text("gitdir: elsewhere")
    os.rename(at(view, "git"), at(view, "file"))
    os.rename(at(view, "file"), at(view, "git"))
    os.unlink(at(view, "git"))


# ---- what lies in a directory that moves


@pytest.mark.parametrize("kind", ["rule", "pattern"])
def test_a_known_file_is_judged_anew_once_its_directory_has_moved(base: Path, mounted: Mounter, kind: str) -> None:
    for name in ("from/d", "to"):
        (base / name).mkdir(parents=True)
    (base / "from/d/x.c").write_text("x")
    rules: tuple[Rule, ...] = (path_rule(base, "to", RuleState.WRITE_ASK),)
    if kind == "pattern":
        free = SuffixRule(b".c", RuleState.ALLOW, "test:2", os.fsencode(base / "from"))
        rules = (path_rule(base, "..", RuleState.WRITE_ASK), free)
    view = mounted(
        book=RuleBook(RuleSet(rules)) if kind == "pattern" else book(base, *rules),
        asker=(answers := Answers(Decision.ALLOW)),
    )
    os.truncate(at(view, "from/d/x.c"), 0)
    assert answers.asked == []
    os.rename(at(view, "from/d"), at(view, "to/d"))
    answers.decision = Decision.DENY
    answers.asked.clear()
    for _ in range(2):
        with refused():
            os.truncate(at(view, "to/d/x.c"), 0)
    assert [question.path for question in answers.asked] == [os.fsencode(base / "to/d/x.c")] * 2


def test_a_file_is_judged_anew_where_it_has_moved(base: Path, mounted: Mounter) -> None:
    (base / "to").mkdir()
    (base / "file").write_text("x")
    rule = path_rule(base, "to", RuleState.WRITE_ASK)
    view = mounted(book=book(base, rule), asker=(answers := Answers(Decision.ALLOW)))
    os.truncate(at(view, "file"), 0)
    os.rename(at(view, "file"), at(view, "to/file"))
    answers.decision = Decision.DENY
    with refused():
        os.truncate(at(view, "to/file"), 0)


# ---- rules below a directory's old and new place


@pytest.mark.parametrize("opened", ["open/a.pem", "open/deep/b.pem", "open/**", "open/deep/**", "open/x.pem/file"])
def test_a_directory_does_not_take_along_what_a_rule_opens_to_where_a_pattern_closes_it(
    base: Path, mounted: Mounter, opened: str
) -> None:
    """What is written there could not have been written at the new place."""
    (base / "top/open/deep").mkdir(parents=True)
    path = os.fsencode(base / "top" / opened.removesuffix("/**"))
    rule = PathRule(path, RuleState.ALLOW, "test:1", is_whole=opened.endswith("/**"))
    view = mounted(book=book(base, SuffixRule(b".pem", RuleState.READ_ONLY, "test:2"), rule))
    with refused(errno.EXDEV):
        os.rename(at(view, "top"), at(view, "other"))
    os.mkdir(at(view, "empty"))
    for one, other in (("top", "empty"), ("empty", "top")):
        with refused(errno.EXDEV):
            renameat2(at(view, one), at(view, other), EXCHANGE)


def test_a_rule_that_opens_nothing_that_a_pattern_closes_lets_a_directory_go(base: Path, mounted: Mounter) -> None:
    (base / "top/open").mkdir(parents=True)
    view = mounted(book=book(base, PEM, path_rule(base, "top/open", RuleState.ALLOW)))
    os.rename(at(view, "top"), at(view, "other"))


def test_a_rule_at_the_new_place_does_not_open_what_a_pattern_protects(base: Path, mounted: Mounter) -> None:
    (base / "keys/deep").mkdir(parents=True)
    (base / "keys/a.pem").write_text("secret")
    (base / "keys/deep/b.pem").write_text("secret")
    rules = [path_rule(base, path, RuleState.ALLOW) for path in ("open/a.pem", "open/deep/b.pem")]
    view = mounted(book=book(base, PEM, *rules))
    with refused(errno.EXDEV):
        os.rename(at(view, "keys"), at(view, "open"))
    os.mkdir(at(view, "open"))
    for flags in (0, EXCHANGE):
        with refused(errno.EXDEV):
            renameat2(at(view, "keys"), at(view, "open"), flags)
    with refused(errno.EXDEV):
        renameat2(at(view, "open"), at(view, "keys"), EXCHANGE)
    with refused(errno.EXDEV):
        os.rename(at(view, "keys/deep"), at(view, "open/deep"))


# ---- hard links


def test_a_name_that_gets_hidden_is_gone_though_the_file_was_last_seen_by_another(base: Path, mounted: Mounter) -> None:
    (base / "a").mkdir()
    (base / "b").mkdir()
    view = mounted(book=book(base))
    Path(at(view, "a/one")).write_text("x" * 77)
    os.link(at(view, "a/one"), at(view, "b/two.pem"))
    hidden_ways = (
        path_rule(base, "a/one", RuleState.HIDDEN),
        path_rule(base, "b/two.pem", RuleState.HIDDEN),
        SuffixRule(b".pem", RuleState.HIDDEN, "test:2"),
    )
    for rule in hidden_ways:
        for last_seen in ("a/one", "b/two.pem"):
            replace_rules(view)
            for path in ("a/one", "b/two.pem", last_seen):
                os.stat(at(view, path))
            replace_rules(view, rule)
            gone, kept = ("a/one", "b/two.pem") if rule is hidden_ways[0] else ("b/two.pem", "a/one")
            with refused(errno.ENOENT):
                os.stat(at(view, gone))
            assert os.stat(at(view, kept)).st_size == 77
            with refused():
                Path(at(view, kept)).read_text()


@pytest.mark.parametrize("act", [os.link, os.rename])
@pytest.mark.parametrize("kind", ["path", "suffix"])
def test_a_name_that_gets_hidden_is_gone_though_the_file_has_another_from_the_host(
    base: Path, mounted: Mounter, kind: str, act: Callable[[Path, Path], None]
) -> None:
    (base / "one.pem").write_text("x" * 77)
    view = mounted(book=book(base), base_timeout_s=3600.0)
    assert os.stat(at(view, "one.pem")).st_nlink == 1
    act(base / "one.pem", base / "two")
    os.stat(at(view, "two"))
    by_path = path_rule(base, "one.pem", RuleState.HIDDEN)
    replace_rules(view, by_path if kind == "path" else SuffixRule(b".pem", RuleState.HIDDEN, "test:2"))
    with refused(errno.ENOENT):
        os.stat(at(view, "one.pem"))
    assert os.stat(at(view, "two")).st_size == 77


def test_all_names_of_a_file_have_to_agree(base: Path, mounted: Mounter) -> None:
    view = mounted(book=book(base), asker=(answers := Answers()))
    Path(at(view, "one")).write_text("x")
    os.link(at(view, "one"), at(view, "two"))
    two = path_rule(base, "two", RuleState.READ_ONLY)
    replace_rules(view, two)
    for name in ("one", "two"):
        acts: tuple[Callable[[str], None], ...] = (
            lambda path: os.truncate(path, 0),
            lambda path: os.chmod(path, 0),
            lambda path: os.link(path, path + "x"),
        )
        for act in acts:
            answers.refusals.clear()
            with refused():
                act(at(view, name))
            assert [(question.path, question.rule) for question in answers.refusals] == [(two.path, two)]
        assert Path(at(view, name)).read_text() == "x"
    os.unlink(at(view, "one"))
    with refused():
        os.truncate(at(view, "two"), 0)


def test_a_name_that_is_gone_is_none_of_the_files_names_any_more(base: Path, mounted: Mounter) -> None:
    view = mounted(book=book(base), asker=Answers())
    Path(at(view, "one")).write_text("x")
    for name in ("two", "three"):
        os.link(at(view, "one"), at(view, name))
        os.stat(at(view, name))
    os.unlink(at(view, "one"))
    replace_rules(view, path_rule(base, "one", RuleState.READ_ONLY))
    for name in ("two", "three"):
        os.truncate(at(view, name), 0)


# ---- travels


@pytest.mark.parametrize("is_held", [False, True])
def test_a_travel_that_puts_a_directory_under_a_hiding_rule_hides_at_once(
    base: Path, mounted: Mounter, is_held: bool
) -> None:
    view = mounted(book=book(base))
    os.makedirs(at(view, "old/deep"))
    Path(at(view, "old/secret")).write_text("x" * 77)
    Path(at(view, "old/deep/x")).write_text("x")
    paths = ("secret", "deep", "deep/x")
    first = view.snapshot()
    os.rename(at(view, "old"), at(view, "new"))
    second = view.snapshot()
    replace_rules(view, path_rule(base, "old/secret", RuleState.HIDDEN), path_rule(base, "old/deep", RuleState.HIDDEN))
    with contextlib.ExitStack() as held:
        directory, deep = (held.enter_context(path_to(at(view, path))) for path in ("new", "new/deep"))
        for path in paths if is_held else ():
            held.enter_context(path_to(at(view, "new/" + path)))
        for _ in range(2):
            for path in paths:
                os.stat(path, dir_fd=directory)
            view.travel(first)
            for path in paths:
                with refused(errno.ENOENT):
                    os.stat(path, dir_fd=directory)
                with refused(errno.ENOENT):
                    os.stat(at(view, "old/" + path))
            with refused(errno.ENOENT):
                os.stat("x", dir_fd=deep)
            view.travel(second)


# ---- what refusals say


def test_nobody_is_asked_for_what_is_refused_anyway(base: Path, mounted: Mounter) -> None:
    (base / "asked").write_text("x")
    (base / "asked.d").mkdir()
    rules = (
        path_rule(base, "asked", RuleState.ASK),
        path_rule(base, "asked.d", RuleState.ASK),
        path_rule(base, "asked.d/deep", RuleState.READ_ONLY),
        path_rule(base, "fixed", RuleState.READ_ONLY),
    )
    view = mounted(book=book(base, *rules), asker=(answers := Answers()))
    acts: tuple[Callable[[], None], ...] = (
        lambda: os.rename(at(view, "asked"), at(view, "fixed")),
        lambda: os.link(at(view, "asked"), at(view, "fixed")),
        lambda: os.rename(at(view, "asked.d"), at(view, "free.d")),
        lambda: os.rmdir(at(view, "asked.d")),
    )
    for act in acts:
        with refused():
            act()
    assert answers.asked == []
    assert [(question.path, question.operation, question.rule) for question in answers.refusals] == [
        (rules[3].path, Operation.RENAME, rules[3]),
        (rules[3].path, Operation.LINK, rules[3]),
        (rules[1].path, Operation.RENAME, rules[2]),
        (rules[1].path, Operation.DELETE, rules[2]),
    ]


# ---- patterns that hold in one directory


@pytest.mark.parametrize("state", [RuleState.DENY, RuleState.HIDDEN, RuleState.READ_ONLY])
def test_a_directory_does_not_bring_under_a_pattern_what_could_not_be_made_there(
    base: Path, mounted: Mounter, state: RuleState
) -> None:
    (base / "open/d").mkdir(parents=True)
    (base / "open/d/x.pem").write_text("x")
    (base / "closed/e").mkdir(parents=True)
    pattern = SuffixRule(b".pem", state, "test:1", os.fsencode(base / "closed"))
    view = mounted(book=book(base, pattern), asker=(answers := Answers()))
    assert Path(at(view, "open/d/x.pem")).read_text() == "x"
    with refused():
        Path(at(view, "closed/x.pem")).write_text("x")
    answers.refusals.clear()
    with refused(errno.EXDEV):
        os.rename(at(view, "open/d"), at(view, "closed/d"))
    for old, new in (("open/d", "closed/e"), ("closed/e", "open/d")):
        with refused(errno.EXDEV):
            renameat2(at(view, old), at(view, new), EXCHANGE)
    assert {question.rule for question in answers.refusals} == {pattern}
    assert len(answers.refusals) == 3
