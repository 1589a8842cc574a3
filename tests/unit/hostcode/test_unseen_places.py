"""What comes with a change, and nobody looks at: it lies where no commit looks, or is closed."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.scribe import Scribe
from tests.support.user_identity import ORDINARY, room_of
from tests.unit.hostcode.found_marks import marks, write


def test_what_leads_to_where_no_commit_looks_is_marked(scribe: Scribe) -> None:
    """A run's own `/tmp` and the view are at paths of the host that a program may learn."""
    base = Path(os.fsdecode(scribe.base.root))
    top = base / "home/u"
    (top / "p/old").mkdir(parents=True)
    (top / "p/old/far").symlink_to("../../s/run-tmp")
    (top / "near").symlink_to("s")
    (base / "data/sessions").mkdir(parents=True)
    (top / "s").symlink_to("../../data/sessions")
    own, states = (os.fsencode(base / "view"),), (os.fsencode(top / "s"),)
    for name, target in {
        "tmp": top / "s/run-tmp/tmp/x",
        "round": Path("../near/run-tmp"),
        "real": base / "data/sessions/run-tmp",
        "by another": Path("tmp/../x"),
        "process": Path("/proc/17/root/tmp"),
        "myself": Path("/proc/self/root"),
        "view": base / "view/home/u/p",
        "else": Path("../source"),
        "system": Path("/proc/meminfo"),
        "dangling": Path("nowhere"),
    }.items():
        scribe.symlink(b"home/u/p/" + name.encode(), os.fsencode(target))
    scribe.rename(b"home/u/p/old", b"home/u/p/new")
    for name, place in {"d": top / "s/t/.git/modules/x", "e": base / "view/.git/worktrees/x"}.items():
        write(scribe, f"p/{name}/.git", b"gitdir: %b\n" % os.fsencode(place))
    unseen = ("tmp", "round", "real", "by another", "process", "myself", "view", "new")
    expected = {f"p/{name}": "unseen" for name in unseen} | {"p/d/.git": "git", "p/e/.git": "git"}
    assert marks(scribe, own=own, states=states) == expected


def test_a_remote_that_is_a_repository_where_no_commit_looks_is_marked(scribe: Scribe) -> None:
    """A push runs its hooks."""
    base = Path(os.fsdecode(scribe.base.root))
    state = base / "data/sessions"
    state.mkdir(parents=True)
    states = (os.fsencode(state),)
    far = state / "run-tmp/x"
    addresses = {
        "path": f"url = {far}",
        "file": f"url = file://{far}",
        "coded": f"url = file://localhost{str(far).replace('run-tmp', 'run%2Dtmp')}",
        "pushed": f"url = /srv/x\n\tpushurl = {far}",
        "relative": "url = ../../../../data/sessions/x",
        "home": "url = ~/x",
        "else": "url = ../../source",
        "srv": "url = /srv/git/x.git",
        "net": "url = https://example.org/data/sessions/x",
        "ssh": "url = host:/data/sessions/x",
    }
    for name, address in addresses.items():
        write(scribe, f"p/{name}/.git/config", f'[remote "origin"]\n\t{address}\n'.encode())
    write(scribe, "p/branch/.git/config", f'[branch "main"]\n\tremote = {far}\n'.encode())
    marked = [*list(addresses)[:6], "branch"]
    assert marks(scribe, states=states) == {f"p/{name}/.git/config": "git" for name in marked}


def test_a_remote_in_the_view_is_marked_but_in_a_clone_that_was_made_there(scribe: Scribe) -> None:
    """What git clones by paths of the mount names one there; base's repository has no cause to."""
    base = Path(os.fsdecode(scribe.base.root))
    mount = base / "run/mnt"
    (base / "p/.git").mkdir(parents=True)
    (base / "p/.git/config").write_text("[core]\n\tbare = false\n")
    for name in ("p", "clone"):
        write(scribe, f"{name}/.git/config", f'[remote "origin"]\n\turl = {mount}/p\n'.encode())
    assert marks(scribe, own=(os.fsencode(mount),)) == {"p/.git/config": "git"}


def test_a_renamed_directory_that_nobody_can_look_into_is_marked() -> None:
    with room_of(ORDINARY) as room:
        top = Path(os.fsdecode(room)) / "base/home/u/p"
        for name in ("closed", "listed", "open", "holds/closed"):
            (top / name).mkdir(parents=True)
            (top / name / "notes").write_text("x")
            (top / name / "notes").chmod(0o755)
        modes = {"closed": 0, "listed": 0o400, "holds/closed": 0}
        for name, mode in modes.items():
            (top / name).chmod(mode)
        (Path(os.fsdecode(room)) / "store").mkdir()
        scribe = Scribe(room + b"/base", room + b"/store")
        for name in ("closed", "listed", "open", "holds"):
            scribe.rename(f"home/u/p/{name}".encode(), f"home/u/p/new {name}".encode())
        assert marks(scribe) == {f"p/new {name}": "unseen" for name in ("closed", "listed", "holds")}
        for name in modes:
            (top / name).chmod(0o700)
