"""Rules that come and go, and directories that move, on a mounted view."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.in_process import MountedView
from yolofs.rules import RuleBook, RuleIndex, RuleSet, parse_rules

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]


def rules(base: Path, keys: dict[str, str]) -> RuleSet:
    """Return rules whose relative keys start from ``base``."""
    return parse_rules([(key, state, None) for key, state in keys.items()], bytes(base), b"/nobody")


def replace(view: MountedView, now: RuleSet) -> None:
    """Put other rules in force as the daemon does."""
    gate = view.mount.gate
    index = RuleIndex(now)
    view.mount.invalidate(view.mount.call(lambda: gate.replace_rules(index))())


@pytest.fixture
def view(base: Path, mounted: Mounter) -> Callable[[dict[str, str]], Any]:
    for name in ("a/x.pem", "a/b/x.pem", "open/y.pem", "confined/z.c"):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(name)

    def mount(keys: dict[str, str]) -> MountedView:
        return mounted(book=RuleBook(rules(base, keys)), base_timeout_s=3600.0)

    return mount


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"open/**": "allow"}, {}),
        ({"open/**": "allow"}, {"open": "allow"}),
        ({"./**": "allow", "open/**": "allow"}, {"./**": "allow", "open": "allow"}),
        ({"./**": "allow"}, {"./**": "allow", "open": "allow"}),
        ({"open/y.pem": "allow"}, {}),
        ({"**/open/**": "allow"}, {"**/open": "allow"}),
    ],
)
def test_a_file_that_a_pattern_hides_again_is_gone_at_once(
    base: Path, view: Callable[[dict[str, str]], MountedView], before: dict[str, str], after: dict[str, str]
) -> None:
    fixed = {".": "allow", "**/*.pem": "hidden"}
    if "./**" in before:
        del fixed["."]
    mount = view(fixed | before)
    path = Path(os.fsdecode(mount.mountpoint), "open/y.pem")
    assert path.read_text() == "open/y.pem"
    path.stat()  # which the kernel remembers
    replace(mount, rules(base, fixed | after))
    assert not path.exists()
    assert os.listdir(path.parent) == []
    replace(mount, rules(base, fixed | before))
    assert path.read_text() == "open/y.pem"


@pytest.mark.parametrize(
    ("source", "target"),
    [("a", "open/a"), ("a/b", "open/b"), ("a", "node_modules"), ("confined", "other"), ("a", "loose/a")],
)
def test_a_directory_does_not_leave_the_patterns_that_guard_it(
    view: Callable[[dict[str, str]], MountedView], source: str, target: str
) -> None:
    mount = view(
        {
            ".": "allow",
            "open/**": "allow",
            "**/*.pem": "deny",
            "./**/node_modules/**": "allow",
            "confined/**/*.c": "read-only",
            "loose/**/x.pem": "allow",
        }
    )
    top = os.fsdecode(mount.mountpoint)
    os.mkdir(os.path.join(top, "loose"))
    with pytest.raises(OSError, match="cross-device") as caught:
        os.rename(os.path.join(top, source), os.path.join(top, target))
    assert caught.value.errno == errno.EXDEV
    done = subprocess.run(["mv", source, target], cwd=top, capture_output=True, text=True, check=False)
    if source == "confined":  # the copy is a new file, for which there is no rule; the old one stays
        assert "cannot remove" in done.stderr
    else:
        assert "Permission denied" in done.stderr
        assert not os.path.exists(os.path.join(top, target, "x.pem"))


def test_a_directory_moves_freely_where_the_same_patterns_guard_it(
    view: Callable[[dict[str, str]], MountedView],
) -> None:
    mount = view({".": "allow", "open/**": "allow", "**/*.pem": "deny"})
    top = os.fsdecode(mount.mountpoint)
    os.rename(os.path.join(top, "a"), os.path.join(top, "c"))
    os.mkdir(os.path.join(top, "d"))
    os.rename(os.path.join(top, "c/b"), os.path.join(top, "d/b"))
    with pytest.raises(PermissionError):
        Path(top, "d/b/x.pem").read_text()
    os.mkdir(os.path.join(top, "open/inner"))
    os.rename(os.path.join(top, "open/inner"), os.path.join(top, "open/other"))


@pytest.mark.parametrize(("source", "target"), [("confined", "open"), ("open", "closed")])
def test_a_directory_with_nothing_to_guard_stays_on_its_side_too(
    view: Callable[[dict[str, str]], MountedView], source: str, target: str
) -> None:
    mount = view({".": "allow", "open/**": "allow", "**/*.pem": "deny"})
    top = os.fsdecode(mount.mountpoint)
    if target == "open":
        os.unlink(os.path.join(top, "open/y.pem"))
        os.rmdir(os.path.join(top, "open"))
    with pytest.raises(OSError, match="cross-device") as caught:
        os.rename(os.path.join(top, source), os.path.join(top, target))
    assert caught.value.errno == errno.EXDEV


@pytest.mark.parametrize(
    ("source", "target"), [("kept", "open/kept"), ("open/inner", "kept/inner"), ("shut", "open/shut")]
)
def test_a_rename_that_a_rule_refuses_fails_with_eacces_and_not_with_exdev(
    base: Path, view: Callable[[dict[str, str]], MountedView], source: str, target: str
) -> None:
    for name in ("kept", "shut", "open/inner"):
        (base / name).mkdir()
    mount = view({".": "allow", "open/**": "allow", "kept": "read-only", "shut": "deny", "**/*.pem": "deny"})
    top = os.fsdecode(mount.mountpoint)
    with pytest.raises(PermissionError) as caught:
        os.rename(os.path.join(top, source), os.path.join(top, target))
    assert caught.value.errno == errno.EACCES
