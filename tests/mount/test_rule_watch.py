"""Rules that change while a real daemon serves: files written, replaced, broken, removed, and new
directories.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.program import Program, can_read, wait_until
from yolofs.daemon.rpc.client import Client

pytestmark = pytest.mark.mount


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the user's own file will be; nothing of it is there yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config/yolofs/config.toml"


@pytest.fixture
def yolofs(tmp_path: Path, config: Path) -> Program:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("one\n")
    (project / "dir").mkdir()
    (project / "dir/b.txt").write_text("two\n")
    program = Program(project)
    program.start_session()
    return program


@pytest.fixture
def view(yolofs: Program) -> Iterator[Path]:
    with yolofs.mounted(expected_in_log=()) as mountpoint:
        yield mountpoint


def warnings(yolofs: Program) -> tuple[str, ...]:
    client = Client.connect(os.fsencode(yolofs.session))
    assert client is not None
    with client:
        return client.info().warnings


def replace(path: Path, text: str) -> None:
    """Write a file as many editors do: beside it, and then over it."""
    path.with_name("other").write_text(text)
    path.with_name("other").rename(path)


def test_the_projects_file_takes_effect_while_mounted(yolofs: Program, view: Path) -> None:
    assert can_read(view / "a.txt")
    (yolofs.project / ".yolofs.toml").write_text('[rules]\n"a.txt" = "deny"\n')
    wait_until(lambda: not can_read(view / "a.txt"), "the rule")
    assert can_read(view / "dir/b.txt")
    replace(yolofs.project / ".yolofs.toml", '[rules]\ndir = "hidden"\n')
    wait_until(lambda: can_read(view / "a.txt"), "the other rule")
    wait_until(lambda: not (view / "dir").exists(), "what is hidden gone")
    (yolofs.project / ".yolofs.toml").unlink()
    wait_until(lambda: can_read(view / "dir/b.txt"), "no rule")


def test_the_users_file_takes_effect_though_its_directory_is_new(yolofs: Program, view: Path, config: Path) -> None:
    assert not config.parent.parent.exists()
    config.parent.mkdir(parents=True)
    config.write_text(f'[rules]\n"{yolofs.project}/a.txt" = "deny"\n')
    wait_until(lambda: not can_read(view / "a.txt"), "the rule")
    config.write_text("")
    wait_until(lambda: can_read(view / "a.txt"), "no rule")


def test_learned_rules_written_by_hand_take_effect(yolofs: Program, view: Path) -> None:
    path = yolofs.session / "rules.toml"
    path.write_text('[rules]\n"a.txt" = "deny"\n')
    wait_until(lambda: not can_read(view / "a.txt"), "the rule")
    replace(path, '[rules]\n"dir" = "deny"\n')
    wait_until(lambda: can_read(view / "a.txt"), "the other rule")
    assert not can_read(view / "dir/b.txt")


def test_the_preset_can_be_switched_off_while_mounted(yolofs: Program, view: Path) -> None:
    (yolofs.project / ".yolofs.toml").write_text('preset = "none"\nask_timeout = 0\n[rules]\n"a.txt" = "allow"\n')
    yolofs.trust()
    wait_until(lambda: "standard" not in yolofs("status").out and len(os.listdir(view)) > 0, "the view")
    (view / "a.txt").write_text("allowed\n")


def test_a_file_that_is_broken_leaves_its_rules_in_force_and_says_so(yolofs: Program) -> None:
    path = yolofs.project / ".yolofs.toml"
    path.write_text('[rules]\n"a.txt" = "deny"\n')
    expected = '.yolofs.toml:2: rules."a.txt": expected "allow", "read-only"'
    with yolofs.mounted(expected_in_log=(expected,)) as view:
        path.write_text('[rules]\n"a.txt" = "allowed"\n')
        wait_until(lambda: warnings(yolofs), "the warning")
        (warning,) = warnings(yolofs)
        assert warning.startswith(expected)
        assert warning.endswith("; the rules that it had before stay in force")
        assert not can_read(view / "a.txt")
        assert warning in yolofs("status").err
        path.write_text('[rules]\n"a.txt" = "allow"\n')
        wait_until(lambda: can_read(view / "a.txt") and not warnings(yolofs), "the mended file")


@pytest.mark.parametrize(
    "make",
    [Path.mkdir, lambda path: path.symlink_to(path), lambda path: path.symlink_to("gone")],
    ids=["directory", "loop", "dangling"],
)
def test_removing_a_rule_file_that_cannot_be_read_ends_its_rules(yolofs: Program, make: Callable[[Path], None]) -> None:
    path = yolofs.project / ".yolofs.toml"
    path.write_text('[rules]\n"a.txt" = "deny"\n')
    with yolofs.mounted(expected_in_log=("cannot be read",)) as view:
        path.unlink()
        make(path)
        wait_until(lambda: warnings(yolofs), "the warning")
        assert not can_read(view / "a.txt")
        path.rmdir() if path.is_dir() else path.unlink()
        wait_until(lambda: can_read(view / "a.txt") and not warnings(yolofs), "the end of its rules")


def test_learned_rules_whose_file_goes_before_the_watch_has_seen_it_are_not_in_force(
    yolofs: Program, view: Path
) -> None:
    (yolofs.project / ".yolofs.toml").write_text('[rules]\n"dir" = "deny"\n')
    wait_until(lambda: not can_read(view / "dir/b.txt"), "the watch at work")
    yolofs("rule", "deny", "a.txt")
    assert not can_read(view / "a.txt")
    (yolofs.session / "rules.toml").unlink()
    wait_until(lambda: can_read(view / "a.txt"), "the end of its rules")


def test_no_link_on_the_way_to_what_a_rule_is_about_can_be_put_to_another_use(
    yolofs: Program, config: Path, tmp_path: Path
) -> None:
    project = yolofs.project
    for name in ("real", "other", "dot"):
        (project / name).mkdir()
        (project / name / "secret").write_text(name)
    (project / "data").symlink_to("mid")
    (project / "mid").symlink_to("real")
    (project / "hop").symlink_to("dot/c.toml")
    config.parent.mkdir(parents=True)
    config.symlink_to(project / "hop")
    (project / "dot/c.toml").write_text(f'[rules]\n"{project}/a.txt" = "deny"\n')
    (project / ".yolofs.toml").write_text('[rules]\n"data/secret" = "deny"\n')
    with yolofs.mounted() as view:
        for path in ("a.txt", "data/secret", "mid/secret", "real/secret"):
            assert not can_read(view / path)
        assert can_read(view / "other/secret")
        os.symlink("other", view / "new")
        for name in ("mid", "hop", "dot/c.toml"):
            for act in (
                os.unlink,
                lambda path: os.rename(path, view / "x"),
                lambda path: os.rename(view / "new", path),
            ):
                with pytest.raises(PermissionError):
                    act(view / name)


@pytest.mark.parametrize("link", ["config/yolofs/config.toml", "config/yolofs", "config"])
def test_settings_kept_elsewhere_that_cannot_be_found_leave_the_rules_in_force(
    yolofs: Program, config: Path, tmp_path: Path, link: str
) -> None:
    config.parent.mkdir(parents=True)
    config.write_text(f'[rules]\n"{yolofs.project}/a.txt" = "deny"\n')
    dotfiles = (tmp_path / link).rename(tmp_path / "dotfiles")
    (tmp_path / link).symlink_to(dotfiles)
    with yolofs.mounted(expected_in_log=("is a link to what does not exist",)) as view:
        assert not can_read(view / "a.txt")
        dotfiles.rename(tmp_path / "away")
        wait_until(lambda: warnings(yolofs), "the warning")
        assert "; the rules that it had before stay in force" in warnings(yolofs)[0]
        assert not can_read(view / "a.txt")
        (tmp_path / link).unlink()
        wait_until(lambda: can_read(view / "a.txt") and not warnings(yolofs), "the end of its rules")


def test_status_tells_of_a_broken_file_of_the_users(yolofs: Program, config: Path) -> None:
    with yolofs.mounted(expected_in_log=("unknown key",)):
        config.parent.mkdir(parents=True)
        config.write_text("rulez = 3\n")
        wait_until(lambda: warnings(yolofs), "the warning")
        (warning,) = yolofs("status", "--json").json["warnings"]
        assert warning.startswith(f'{config}:1: rulez: unknown key; did you mean "rules"?; the rules')
        assert warning in yolofs("status").err


def test_a_mount_with_broken_rules_is_refused(yolofs: Program, config: Path) -> None:
    config.parent.mkdir(parents=True)
    config.write_text('[rules]\n"a.txt" = "deny"\n')
    message = yolofs.refused("mount", "--root", ".", code=3)
    assert message.startswith(f'yolofs: {config}:2: rules."a.txt": expected an absolute path or one below ~')


def test_an_editor_that_removes_before_it_writes_opens_nothing(yolofs: Program) -> None:
    path = yolofs.project / ".yolofs.toml"
    path.write_text('[rules]\n"a.txt" = "deny"\n')
    with yolofs.mounted() as view:
        text = path.read_text()

        def save() -> None:
            for _ in range(4):
                path.unlink()
                time.sleep(0.1)  # as long as an editor may take
                replace(path, text)
                time.sleep(0.3)  # so that the daemon looks in between; whether it does is no matter

        editor = threading.Thread(target=save)
        editor.start()
        reads = [can_read(view / "a.txt")]
        while editor.is_alive():
            reads.append(can_read(view / "a.txt"))
        assert not any(reads)


def test_names_that_are_not_utf8_beside_the_file_do_no_harm(yolofs: Program, view: Path) -> None:
    strange = os.fsencode(yolofs.project) + b"/\xff"
    for _ in range(3):
        os.close(os.open(strange, os.O_CREAT | os.O_WRONLY))
        os.unlink(strange)
    (yolofs.project / ".yolofs.toml").write_text('[rules]\n"a.txt" = "deny"\n')
    wait_until(lambda: not can_read(view / "a.txt"), "the rule")


def test_what_becomes_of_asks_that_nobody_answers_can_be_changed_while_mounted(yolofs: Program, view: Path) -> None:
    rules = '[rules]\n"a.txt" = "ask"\n"dir/b.txt" = "deny"\n'
    (yolofs.project / ".yolofs.toml").write_text(f'ask_timeout = 0.2\nask_default = "allow"\n{rules}')
    yolofs.trust()
    wait_until(lambda: not can_read(view / "dir/b.txt"), "the rules")
    assert (view / "a.txt").read_text() == "one\n"
    (yolofs.project / ".yolofs.toml").write_text(f"ask_timeout = 0.1\n{rules}")
    wait_until(lambda: not can_read(view / "a.txt"), "the other default")
