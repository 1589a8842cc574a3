"""What ``yolofs doctor`` checks in a session.  Each check returns findings, and changes nothing."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from yolofs.cli.project.which_project import session_directory
from yolofs.cli.rules.untrusted_settings import waiting_lines
from yolofs.cli.show.finding_lines import CheckFinding, Health
from yolofs.commit import plan_commit
from yolofs.config.trust import NEXT, count_text
from yolofs.daemon.rpc.client import Client
from yolofs.daemon.rpc.daemon_files import mountpoint_path, other_version, read_daemon_file
from yolofs.daemon.rpc.revision import REMOUNT
from yolofs.errors import ConflictError, JournalError, MountError, SessionBusyError, YolofsError, reason
from yolofs.fuse.transport_choice import Setting, transport_for
from yolofs.journal import cuts
from yolofs.journal.journal import Journal
from yolofs.paths import RelPath, display
from yolofs.registry.runtime import MOUNT_NAME, runtime_directory
from yolofs.registry.trust import load_in_force
from yolofs.session.archive import commit_directory, journal_loss
from yolofs.session.history.chapters import chapters
from yolofs.session.opening.lock import session_locked
from yolofs.session.opening.misfits import find_bad_line
from yolofs.session.session import Session, SessionAccess
from yolofs.state.hard_links import find_misnamed
from yolofs.state.tree import Staged, Tree
from yolofs.system.mounts import is_ours, mounts_at
from yolofs.text.enumeration import some_of

_LITTLE_SPACE = 1 << 30
_NO_SPACE = 16 << 20
_MOST_LOST = 5
"""How many lost files are named."""
_FUSE_CONF = "/etc/fuse.conf"


def check_session(project: bytes) -> Iterator[CheckFinding]:
    """Check the session of a project."""
    directory = session_directory(project)
    yield _permissions(directory)
    yield from _config(project)
    yield _journal(directory)
    yield from _cuts(directory)
    yield from _daemon_and_lock(directory)
    yield from _commits(project)
    yield from _history(project)
    yield from _store(project)
    yield from _plan(project)
    yield _space(directory)


# ---- the machine


# ---- the session


def _permissions(directory: bytes) -> CheckFinding:
    st = os.lstat(directory)
    name = display(directory)
    if st.st_uid != os.geteuid():
        return CheckFinding("permissions", Health.FAIL, f"{name} belongs to user {st.st_uid}", "work as that user")
    if st.st_mode & 0o077:
        return CheckFinding("permissions", Health.FAIL, f"others can look into {name}", f"chmod 700 {name}")
    return CheckFinding("permissions", Health.OK, f"only you can look into {name}")


def _config(project: bytes) -> Iterator[CheckFinding]:
    try:
        settings = load_in_force(project, session_directory(project)).settings
    except YolofsError as error:
        yield CheckFinding("config", Health.FAIL, error.message, "correct the file")
        return
    yield CheckFinding("config", Health.OK, ".yolofs.toml can be used")
    yield from _trust(project)
    if settings.mount.transport != "auto":
        yield _chosen_transport(settings.mount.transport)
    if settings.mount.allow_other is True and os.geteuid():
        yield _allow_other()


def _chosen_transport(setting: Setting) -> CheckFinding:
    """Tell whether mounts can be made as the project's settings want them."""
    try:
        transport_for(setting)
    except MountError as error:
        return CheckFinding("mount.transport", Health.FAIL, error.message, error.hint or "correct the file")
    return CheckFinding("mount.transport", Health.OK, f"the next mount gets {setting}")


def _trust(project: bytes) -> Iterator[CheckFinding]:
    try:
        count = len(waiting_lines(project))
    except YolofsError as error:  # the user's own file, or the learned rules
        yield CheckFinding("rules", Health.FAIL, error.message, error.hint or "correct the file")
        return
    if count:
        yield CheckFinding("trust", Health.WARN, count_text(count), NEXT)
    else:
        yield CheckFinding("trust", Health.OK, "no line of .yolofs.toml waits for you to agree to it")


def _allow_other() -> CheckFinding:
    with contextlib.suppress(OSError), open(_FUSE_CONF, encoding="utf-8", errors="replace") as lines:
        if any(line.strip() == "user_allow_other" for line in lines):
            return CheckFinding("user_allow_other", Health.OK, f"is in {_FUSE_CONF}")
    message = "allow_other is set, and fusermount3 will refuse it"
    return CheckFinding(
        "user_allow_other", Health.FAIL, message, f"add the line user_allow_other to {_FUSE_CONF}, as root"
    )


def _journal(directory: bytes) -> CheckFinding:
    path = os.path.join(directory, b"journal")
    try:
        damage = find_bad_line(path)
    except FileNotFoundError:
        lost = journal_loss(directory)
        if lost is not None:
            return CheckFinding("journal", Health.FAIL, lost.message, lost.hint)
        return CheckFinding("journal", Health.WARN, "is not there; the next command makes one")
    except YolofsError as error:
        return CheckFinding("journal", Health.FAIL, error.message, error.hint)
    except OSError as error:
        return CheckFinding("journal", Health.FAIL, f"cannot be read: {error.strerror}")
    if damage is not None:
        if damage.is_torn:
            message = cuts.torn_message(damage.offset_bytes, damage.line_number, damage.cut_bytes, damage.cut_lines)
            return CheckFinding("journal", Health.WARN, message, cuts.TORN_NEXT)
        message = f"line {damage.line_number} (byte {damage.offset_bytes}) is bad: {damage.reason}"
        if damage.generations:
            message += cuts.unshown_clause(damage.generations)
            advice = (
                f"yolofs doctor --repair takes {cuts.record_text(damage.cut_lines)} out, to the end of generation "
                f"{damage.generations[0]}, and keeps them in journal.torn"
            )
            return CheckFinding("journal", Health.FAIL, message, advice)
        advice = (
            "yolofs doctor --repair --keep-rest leaves out the bad lines alone; yolofs doctor --repair cuts "
            f"{cuts.record_text(damage.cut_lines)} off, from there on; either keeps all in journal.torn"
        )
        return CheckFinding("journal", Health.FAIL, message, advice)
    with Journal.open(path, read_only=True) as journal:
        if journal.missing_records:
            told = cuts.missing_sentence(journal.missing_records, journal.record_count + 2)
            return CheckFinding("journal", Health.FAIL, *told.split("; ", 1))
    text = f"every line of {os.stat(path).st_size} bytes is sound"
    if Journal.form_of(path).version == 1:
        text += "; of version 1, in which a line that is missing does not show, until a commit or abort ends it"
    return CheckFinding("journal", Health.OK, text)


def _cuts(directory: bytes) -> Iterator[CheckFinding]:
    path = os.path.join(directory, b"journal")
    with contextlib.suppress(YolofsError, OSError):  # said by another check
        found = cuts.read(path, Journal.form_of(path).key)
        if found:
            yield CheckFinding("cut", Health.WARN, "; ".join(cuts.message(cut, path) for cut in found), cuts.advice())


def _daemon_and_lock(directory: bytes) -> Iterator[CheckFinding]:
    try:
        client = Client.connect(directory)
        if client is not None:
            with client:
                pid = client.info().pid
                versions = other_version(client.described)
                if versions:
                    yield CheckFinding("daemon", Health.WARN, f"process {pid}: {versions}", REMOUNT)
                else:
                    yield CheckFinding("daemon", Health.OK, f"process {pid} serves the mount")
            return
    except YolofsError as error:
        yield CheckFinding("daemon", Health.FAIL, error.message, "yolofs unmount --force")
        return
    try:
        with session_locked(directory):
            yield CheckFinding("lock", Health.OK, "is free")
            yield _stale_mounts(directory)
    except SessionBusyError as error:
        yield CheckFinding("lock", Health.WARN, error.message, error.hint)


def _stale_mounts(directory: bytes) -> CheckFinding:
    """Look for mounts that a dead daemon left.  The caller holds the lock."""
    described = read_daemon_file(directory)
    places = {os.path.join(runtime_directory(directory), MOUNT_NAME)}
    if described is not None:
        places.add(mountpoint_path(described))
    stale = [display(place) for place in sorted(places) if any(map(is_ours, mounts_at(place)))]
    if stale:
        return CheckFinding("mount", Health.FAIL, f"the daemon has died and left {', '.join(stale)}", "yolofs unmount")
    return CheckFinding("mount", Health.OK, "nothing is left mounted")


def _commits(project: bytes) -> Iterator[CheckFinding]:
    try:
        with Session.open(project, SessionAccess.READ) as session:
            at_work = session.at_work
            found = session.interrupted()
    except (YolofsError, OSError):
        return  # said by another check
    if at_work is not None:
        yield CheckFinding("commits", Health.WARN, at_work.text, at_work.hint)
    elif found is not None:
        yield CheckFinding("commits", Health.FAIL, found.text, found.hint)
    else:
        yield CheckFinding("commits", Health.OK, "none was interrupted")


def _history(project: bytes) -> Iterator[CheckFinding]:
    """Check that the journals of earlier commits can be read."""
    damaged: list[tuple[int, YolofsError | OSError]] = []
    try:
        with Session.open(project, SessionAccess.READ) as session, chapters(session, lambda *one: damaged.append(one)):
            directory = session.directory
    except (YolofsError, OSError):
        return  # said by another check
    for number, error in reversed(damaged):
        path = display(os.path.join(commit_directory(directory, number), b"journal"))
        why = error.message if isinstance(error, YolofsError) else f"{path}: {reason(error)}"
        is_missing = isinstance(error, FileNotFoundError)
        yield CheckFinding(
            "history",
            Health.WARN,
            f"the journal of commit {number} is missing: {path}"
            if is_missing
            else f"the journal of commit {number} is damaged: {why}",
            "put it back from a backup, or go on: log, runs, timeline and blame leave out what was done before that "
            f"commit, and yolofs undo {number} works all the same",
        )


def _store(project: bytes) -> Iterator[CheckFinding]:
    """Check that the store has every file that is staged."""
    try:
        with Session.open(project, SessionAccess.READ) as session:
            session.interrupted()  # the store knows then what has got into base
            staged = session.state().staged
            missing = [staged[ino] for ino in sorted(staged) if not os.path.lexists(session.store.path(ino))]
    except (YolofsError, OSError):
        return  # said by another check
    if not missing:
        there = "the 1 staged file is there" if len(staged) == 1 else f"all {len(staged)} staged files are there"
        yield CheckFinding("store", Health.OK, there if staged else "nothing is staged")
        return
    paths = sorted(display(entry.path()) for lost in missing for entry in lost.names)
    message = f"the content of {some_of(paths, _MOST_LOST)} is missing from the store"
    advice = "copy what you need from the mount, then travel to a generation without it (yolofs timeline), or abort"
    yield CheckFinding("store", Health.FAIL, message, advice)


def _plan(project: bytes) -> Iterator[CheckFinding]:
    """Check that a commit would give base exactly the names that the view shows."""
    try:
        with Session.open(project, SessionAccess.READ) as session:
            if session.interrupted_commit() is not None:
                return
            tree, wrong = find_misnamed(session.live_changes())
            yield _hard_links(tree, wrong)
            steps = len(plan_commit(tree, session.base, session.store).steps)
    except (ConflictError, JournalError, OSError):
        return  # said by another check, or by the commit: base has changed
    except YolofsError as error:
        yield CheckFinding("plan", Health.FAIL, f"nothing can be committed: {error.message}", error.hint)
        return
    yield CheckFinding("plan", Health.OK, f"a commit of all would take {steps} step{'' if steps == 1 else 's'}")


def _hard_links(tree: Tree, wrong: list[tuple[Staged, RelPath]]) -> CheckFinding:
    """Report the files of which an older version recorded the wrong one of several names."""
    if not wrong:
        count = len(tree.linked)
        message = f"{count} staged file{'' if count == 1 else 's'} with several names in base"
        return CheckFinding("hard links", Health.OK, message if count else "no staged file has several names in base")
    staged, recorded = wrong[0]
    name = display(staged.names[0].path() if staged.names else staged.home or b"")
    more = f", and so of {len(wrong) - 1} more" if len(wrong) > 1 else ""
    right = display(staged.home or b"")
    message = (
        f"an older yolofs recorded that {name} is {display(recorded)} in base, but it is {right}{more}:"
        " a commit by that version would lose a name"
    )
    advice = "commit with this version, or abort; do not open the session with an older one"
    return CheckFinding("hard links", Health.WARN, message, advice)


def _space(directory: bytes) -> CheckFinding:
    figures = os.statvfs(directory)
    free = figures.f_bavail * figures.f_frsize
    text = f"{free / (1 << 30):.1f} GiB are free for what is staged"
    if free < _NO_SPACE:
        return CheckFinding("space", Health.FAIL, text, "make room")
    return CheckFinding("space", Health.WARN if free < _LITTLE_SPACE else Health.OK, text)
