"""Rules whose paths lead through symbolic links guard these, and nothing else, before a real
daemon.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.gate_tools import EXCHANGE, refused, renameat2
from tests.support.program import Program, can_read
from tests.support.rows import row
from yolofs.rules import RuleState

pytestmark = pytest.mark.mount

STATES = [state.value for state in RuleState]
READABLE = ("allow", "read-only", "write-ask")
SOURCES = ("user", "project", "learned")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the user's own file is."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = tmp_path / "config/yolofs/config.toml"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def yolofs(tmp_path: Path, config: Path) -> Program:
    """Return the program in a project with three directories; asks are answered with no, at
    once.
    """
    project = tmp_path / "top/project"
    project.mkdir(parents=True)
    for name in ("real", "other", "private"):
        (project / name).mkdir()
        (project / name / "secret").write_text(name)
    program = Program(project)
    program.start_session()
    return program


def write_rules(yolofs: Program, config: Path, source: str, **rules: str) -> None:
    """Write rules for names in the project to one of the files that rules come from."""
    lines = "".join(f'"{yolofs.project}/{name}" = "{state}"\n' for name, state in rules.items())
    paths = {
        "user": config,
        "project": yolofs.project / ".yolofs.toml",
        "learned": yolofs.session / "rules.toml",
    }
    (yolofs.project / ".yolofs.toml").write_text("ask_timeout = 0\n")
    with paths[source].open("a") as file:
        file.write(f"[rules]\n{lines}")


def state_of(yolofs: Program, path: Path | str) -> tuple[str, str]:
    """Return the state over a path, and where the rule is written."""
    document = yolofs("rule", "explain", str(path), "--json").json
    return document["state"], document["rule"]["source"]


def replacements(view: Path, name: str) -> dict[str, Callable[[], None]]:
    """Return ways of putting something else in a link's place; ``view`` has a link ``new``."""
    return {
        "removed": lambda: os.unlink(view / name),
        "renamed": lambda: os.rename(view / name, view / "x"),
        "replaced": lambda: os.rename(view / "new", view / name),
        "exchanged": lambda: renameat2(str(view / "new"), str(view / name), EXCHANGE),
    }


def make_real(project: Path) -> None:
    """Make a directory for each state, that a link may lead to."""
    for state in STATES:
        (project / f"real-{state}").mkdir()
        (project / f"real-{state}/secret").write_text(state)


@pytest.mark.parametrize("source", SOURCES)
def test_a_link_between_a_rules_path_and_where_it_leads_is_not_replaced(
    yolofs: Program, config: Path, source: str
) -> None:
    project = yolofs.project
    make_real(project)
    for state in STATES:
        (project / f"data-{state}").symlink_to(f"mid-{state}")
        (project / f"mid-{state}").symlink_to(f"real-{state}")
    write_rules(yolofs, config, source, **{f"data-{state}": state for state in STATES})
    with yolofs.mounted() as view:
        (view / "new").symlink_to("other")
        for state in STATES:
            with row(state):
                check_link_stays(yolofs, view, state)
        assert can_read(view / "other/secret")


def check_link_stays(yolofs: Program, view: Path, state: str) -> None:
    data, mid = f"data-{state}", f"mid-{state}"
    for name, act in replacements(view, mid).items():
        with refused():
            act()
        assert os.readlink(view / mid) == f"real-{state}", name
    with refused():
        os.rename(view / "new", view / data)
    assert can_read(view / f"real-{state}/secret") is (state in READABLE)
    assert can_read(view / "other/secret")
    assert state_of(yolofs, mid) == ("allow", "built-in: The project")
    held = yolofs("rule", "explain", mid, "--json").json["held"]
    assert (held["key"], held["state"]) == (f"{yolofs.project}/{data}", state)


@pytest.mark.parametrize("source", SOURCES)
def test_a_link_in_a_hidden_directory_shows_nothing_of_it(yolofs: Program, config: Path, source: str) -> None:
    project = yolofs.project
    make_real(project)
    for state in STATES:
        (project / f"data-{state}").symlink_to(f"private/cur-{state}")
        (project / f"private/cur-{state}").symlink_to(f"../real-{state}")
    write_rules(yolofs, config, source, private="hidden", **{f"data-{state}": state for state in STATES})
    with yolofs.mounted() as view:
        for name in ("private", *(f"private/cur-{state}" for state in STATES), "private/secret"):
            assert not os.path.lexists(view / name), name
        assert "private" not in os.listdir(view)
        for state in STATES:
            with row(state):
                assert can_read(view / f"real-{state}/secret") is (state in READABLE)
                assert state_of(yolofs, f"private/cur-{state}")[0] == "hidden"


@pytest.mark.parametrize("state", STATES)
@pytest.mark.some(2)
def test_a_directory_with_a_link_on_the_way_in_it_does_not_go_away(yolofs: Program, config: Path, state: str) -> None:
    project = yolofs.project
    (project / "data").symlink_to("links/mid")
    (project / "links").mkdir()
    (project / "links/mid").symlink_to("../real")
    write_rules(yolofs, config, "project", data=state)
    with yolofs.mounted() as view:
        (view / "new").mkdir()
        (view / "new/mid").symlink_to("../other")
        with refused():
            os.rename(view / "links", view / "away")
        with refused():
            renameat2(str(view / "new"), str(view / "links"), EXCHANGE)
        (view / "links/file").write_text("all else in there is free")


@pytest.mark.parametrize("state", STATES)
@pytest.mark.some(2)
def test_no_link_is_put_at_a_rules_path_nor_above_it(yolofs: Program, config: Path, state: str) -> None:
    """The state would go along to where the link leads, once that is committed."""
    project = yolofs.project
    write_rules(yolofs, config, "learned", **{"deep/one/two": state, "apart/one/two": state, "none": state})
    with yolofs.mounted() as view:
        (view / "link").symlink_to("other")
        for name in ("none", "deep", "deep/one"):
            if name == "deep/one":
                (view / "deep").mkdir()
            with refused():
                (view / name).symlink_to(project / "other")
            with refused():
                os.rename(view / "link", view / name)
            with refused():
                os.link(view / "link", view / name, follow_symlinks=False)
            with refused():
                renameat2(str(view / "link"), str(view / name), 0)
        (view / "bundle/one").mkdir(parents=True)
        (view / "bundle/one/two").symlink_to(project / "other")
        with pytest.raises(OSError, check=lambda error: error.errno in (errno.EXDEV, errno.EACCES)):
            os.rename(view / "bundle", view / "apart")


@pytest.mark.parametrize("source", SOURCES)
def test_no_link_is_put_at_a_rules_path_though_a_link_above_had_gone_before_the_rule_was_made(
    yolofs: Program, config: Path, source: str
) -> None:
    (yolofs.project / "data").symlink_to("real")
    with yolofs.mounted() as view:
        (view / "data").unlink()
        (view / "data").mkdir()
    write_rules(yolofs, config, source, **{"data/name": "allow"})
    with yolofs.mounted() as view:
        with refused():
            (view / "data/name").symlink_to(yolofs.project / "private")
        (view / "data/name").write_text("all else is free")


def test_no_program_makes_itself_a_rule_by_a_link(tmp_path: Path, config: Path) -> None:
    top = tmp_path / "top"
    for name in ("project", "real", "other", "plain"):
        (top / name).mkdir(parents=True)
        (top / name / "f").write_text(name)
    (top / "data").symlink_to("mid")
    (top / "mid").symlink_to("real")
    rules = {str(top): "allow", f"{top}/data": "allow", f"{top}/plain": "allow", "**/other": "ask"}
    config.write_text("[rules]\n" + "".join(f'"{key}" = "{state}"\n' for key, state in rules.items()))
    yolofs = Program(top / "project")
    yolofs.start_session()
    (top / "project/.yolofs.toml").write_text("ask_timeout = 0\n")
    with yolofs.mounted("--root", top) as view:
        with refused():
            os.unlink(view / "mid")
        (view / "aside").symlink_to(top / "other")
        with refused():
            os.rename(view / "aside", view / "mid")
        os.unlink(view / "data")
        os.rename(view / "plain", view / "moved")
        for name in ("mid", "data", "plain"):
            with refused(errno.EEXIST if name == "mid" else errno.EACCES):
                (view / name).symlink_to(top / "other")
        yolofs("commit", "--outside", "--yes")
        yolofs("rule", "deny", "whatever")
        assert state_of(yolofs, top / "other/f") == ("ask", f"{config}:5")


def test_a_link_at_a_rules_own_path_is_what_the_rule_says_it_is(yolofs: Program, config: Path) -> None:
    """An answer for good to whether it may be removed is such a rule."""
    for name, state in (("free", "allow"), ("kept", "read-only")):
        (yolofs.project / name).symlink_to("real")
        yolofs("rule", state, name)
    with yolofs.mounted() as view:
        with refused():
            (view / "kept").unlink()
        (view / "free").unlink()
        with refused():
            (view / "free").symlink_to("other")
        (view / "free").mkdir()


def test_a_rule_from_elsewhere_does_not_leave_the_project_again(tmp_path: Path, config: Path) -> None:
    top = tmp_path / "top"
    (top / "home").mkdir(parents=True)
    for name in ("project", "outside"):
        (top / name).mkdir()
        (top / name / "f").write_text(name)
    (top / "home/bin").symlink_to("../project/bin")
    (top / "project/bin").symlink_to(top / "outside")
    yolofs = Program(top / "project")
    yolofs.start_session()
    config.write_text(f'[rules]\n"{top}" = "ask"\n"{top}/home/bin" = "allow"\n')
    assert state_of(yolofs, top / "outside/f") == ("ask", f"{config}:2")
    note = f"leads out of the project by the link {top}/project/bin, to {top}/outside: allow is not in force there"
    assert f"{config}:3: {top}/home/bin {note}" in yolofs("rule", "list").err
