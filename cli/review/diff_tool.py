"""``yolofs review --tool CMD``: another program's diff of two directories, and what it leaves in
the right one.

The left directory has what was there before, the right one what is staged: the regular files among
the changes, by their paths relative to the project, or to base if some lie outside of it.  What the
right one has at the end is the selection.  Text that was not staged was written in the tool; it is
staged, and selected.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Collection, Container, Iterable, Mapping, Sequence, Sized
from typing import NamedTuple

from yolofs.changes.changes import Change, Side
from yolofs.changes.hunks import FileHunks, HunkKind
from yolofs.changes.picks import LineNumbers, all_but
from yolofs.cli.output import ask, check_can_ask, choose, say, warn
from yolofs.cli.review.change_tree import Key, key_of
from yolofs.cli.review.committing import PreparedCommit, commit_prepared, prepare_commit
from yolofs.cli.review.comparison import Comparison
from yolofs.cli.review.effects import Drop, PickedOrAll, Prepare, Stop
from yolofs.cli.review.end_state import picks_for
from yolofs.cli.review.reader import Reader
from yolofs.cli.review.session_changes import drop_picked_hunks, stage_edit
from yolofs.cli.show.listing import PathDisplay
from yolofs.cli.terminal.at_terminal import run_at_terminal
from yolofs.errors import UsageError, YolofsError, reason
from yolofs.hostcode.code_files import patterns_anywhere
from yolofs.hostcode.mark import is_marked
from yolofs.paths import ROOT, Generation, RelPath, display, join
from yolofs.system.plain_files import open_plain
from yolofs.system.processes import ending_text
from yolofs.system.work_directories import work_directory
from yolofs.text.git_binary import is_binary, read_chunks

_MOST_BYTES = 256 << 20
"""No more is handed out, both sides together, as it is held in memory: an agent makes any number of
files that are nothing but holes.
"""
_GIT = b".git"
_NO_REGULAR_FILE = (errno.EINVAL, errno.ENOTDIR)
"""What :func:`yolofs.system.plain_files.open_plain` refuses such a thing with."""
_NAMED = 10
_NO_PROGRAM, _NO_SUCH_COMMAND = 126, 127
"""What a shell ends with that cannot run a command."""
_BACKUPS = re.compile(rb"(?P<of>.+?)(?:~|\.un~|\.orig|\.bak|\.sw[a-p])", re.DOTALL)
"""Names that tools give to what they keep of a file: kdiff3, emacs, vim and others."""


class _Handed(NamedTuple):
    """A change whose files were handed out."""

    file: FileHunks
    before: bytes | None
    """Its old content, None if there was no file."""
    staged: bytes | None
    right: bytes
    """Where the tool has the new content."""
    right_before: bytes | None
    """Where a tool puts it that takes a rename back."""
    is_executable: bool
    """Whether that was, when it was handed out."""


class _EndState(NamedTuple):
    """What the tool has left."""

    selected: dict[Key, tuple[Change, PickedOrAll]]
    rest: dict[Key, tuple[Change, PickedOrAll]]
    edited: list[tuple[FileHunks, bytes, bytes]]
    """Files in which the tool has left a new text: each with the staged text and the new one."""
    modes_back: set[RelPath]
    """Of these the tool has taken the staged mode back."""


def review_with(reader: Reader, tool: str) -> None:
    """Have a tool show the changes; commit what it leaves, or drop the rest, as the user answers.

    Raises:
        UsageError: what is reviewed is not the present.
        YolofsError: the tool fails, or something has changed meanwhile; nothing is done.
    """
    if not tool.strip():
        raise UsageError("--tool names no command", hint="yolofs review --tool meld")
    comparison = reader.with_marks(reader.compare())
    if not comparison.is_present:
        raise UsageError("a diff tool can only select from the present", hint="yolofs review --tool CMD")
    if not comparison.changes:
        say("nothing has changed there" if comparison.is_part else "nothing is staged")
        return
    check_can_ask(instead="yolofs hunks --json; yolofs commit --hunk ID")
    # In the session, which no view shows: what rules hide from the agent is in these files, too.
    with work_directory(reader.directory, "review") as directory:
        trusted, others = _divide(comparison)
        path_display, top = comparison.path_display, ROOT
        if path_display.project is not None and all(map(path_display.holds, others)):
            top = path_display.project
        handed = _hand_out(reader, others, directory, top)
        if trusted:
            them = "it" if trusted == 1 else "them"
            say(f"note: {trusted} that the host would run or trust not shown; to look at {them}: yolofs review")
        if left_out := sum(not _is_directory(change) for change in others) - len(handed):
            what = "is no regular file, git's own, or too large, is not shown, and stays staged"
            if left_out > 1:
                what = "are no regular files, git's own, or too large, are not shown, and stay staged"
            say(f"note: {left_out} that {what}")
        _run(tool, directory)
        right = os.path.join(directory, b"right")
        if not os.path.isdir(right):
            raise YolofsError(
                "the tool has removed the whole directory of what is staged, so nothing is done",
                hint="to drop everything, have it remove the files in there; or yolofs abort",
            )
        left = _files_in(right, tool)
        end = _end_state(handed, right, left, top, path_display)
    if end.edited and not _stage_edited(reader, end, comparison.path_display):
        say("nothing done")
        return
    _act(reader, end, can_commit=comparison.can_commit)


def _divide(comparison: Comparison) -> tuple[int, list[Change]]:
    """Return how many changes are of what the host would run or trust, and the others.

    A tool gets nothing of the former, not even in directories that are exempt otherwise, and no old
    version.  An editor acts on such files as soon as it opens their directory, and does not know
    that an agent has written them.  And each has to be accepted by itself, for which a tool has no
    key.
    """
    patterns = patterns_anywhere()

    def is_trusted(change: Change) -> bool:
        return is_marked(change, comparison.marks) or any(map(patterns.find, change.paths))

    others = [change for change in comparison.changes if not is_trusted(change)]
    count = sum(not _is_directory(change) for change in comparison.changes)
    return count - sum(not _is_directory(change) for change in others), others


def _hand_out(reader: Reader, changes: Iterable[Change], directory: bytes, top: RelPath) -> list[_Handed]:
    """Write the files of changes into two directories; ``top`` is left out of their paths."""
    handed: list[_Handed] = []
    left_bytes = _MOST_BYTES
    for name in (b"left", b"right"):
        os.mkdir(os.path.join(directory, name), 0o700)

    def place_of(name: bytes, path: RelPath) -> bytes:
        return os.path.join(directory, name, path[len(top) + 1 :] if top else path)

    for change in changes:
        sides = [side for side in (change.old, change.new) if side is not None]
        size = sum(side.size for side in sides)
        if not _may_be_handed_out(change, sides) or size > left_bytes:
            continue
        left_bytes -= size
        left = place_of(b"left", change.old_path or change.path)
        right = place_of(b"right", change.path)
        contents = [
            _copy(reader, side, path_display) if side is not None else None
            for side, path_display in ((change.old, left), (change.new, right))
        ]
        is_renamed = change.new is not None and change.old_path not in (None, change.path)
        right_before = place_of(b"right", change.old_path) if is_renamed and change.old_path is not None else None
        handed.append(
            _Handed(reader.hunks(change), contents[0], contents[1], right, right_before, _is_executable(change.new))
        )
    return handed


def _may_be_handed_out(change: Change, sides: Iterable[Side]) -> bool:
    """Tell whether a tool may get a change.  Not what is in a ``.git``: many editors run git beside
    each file that they open, and the settings of a repository name programs.
    """
    is_git = any(_GIT in path.split(b"/") for path in change.paths)
    return not is_git and all(side.type == stat.S_IFREG for side in sides)


def _copy(reader: Reader, side: Side, path_display: bytes) -> bytes:
    """Write a file for the tool, and return its content."""
    os.makedirs(os.path.dirname(path_display), 0o700, exist_ok=True)
    source = side.open(reader.store)
    try:
        data = b"".join(read_chunks(source, os.fstat(source).st_size))
    finally:
        os.close(source)
    mode = 0o700 if _is_executable(side) else 0o600
    with open(os.open(path_display, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as file:
        file.write(data)
    return data


def _is_executable(side: Side | None) -> bool:
    return side is not None and bool(side.mode & stat.S_IXUSR)


def _run(tool: str, directory: bytes) -> None:
    """Run the tool; blocks until it ends.

    Raises:
        YolofsError: it fails, so nothing is taken.
    """
    left, right = (os.path.join(directory, top) for top in (b"left", b"right"))
    environment = _without_bare_repositories(os.environ)
    code = run_at_terminal(tool, [left, right], environment)
    if code:
        raise _failed(tool, code)


def _failed(tool: str, code: int) -> YolofsError:
    hint = "if it ends so whenever something differs, wrap it in a script that ends with 0"
    if code < 0:
        hint = "yolofs review shows the same without a tool"
    elif code in (_NO_PROGRAM, _NO_SUCH_COMMAND):
        what = "finds no such command" if code == _NO_SUCH_COMMAND else "cannot run this command"
        hint = f"the shell {what}; install it, or give its whole path"
    return YolofsError(f"{display(os.fsencode(tool))} {ending_text(code)}, so nothing is done", hint=hint)


def _without_bare_repositories(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which git takes no directory for a repository that has another name
    than ``.git``: an agent can give any one the files of such.
    """
    text = environment.get("GIT_CONFIG_COUNT", "")
    count = int(text) if text.isascii() and text.isdigit() else 0
    return {
        **environment,
        "GIT_CONFIG_COUNT": str(count + 1),
        f"GIT_CONFIG_KEY_{count}": "safe.bareRepository",
        f"GIT_CONFIG_VALUE_{count}": "explicit",
    }


# ---- what it has left


def _files_in(right: bytes, tool: str) -> list[bytes]:
    """Return the paths of all files that a tool has left.

    Raises:
        YolofsError: a directory cannot be read, so nobody knows what it has left there.
    """

    def refuse(error: OSError) -> None:
        where = os.path.relpath(error.filename, right)
        what = f"the directory {display(where)}" if where != b"." else "the directory of what is staged"
        raise YolofsError(
            f"{what} cannot be read any more, as {display(os.fsencode(tool))} has left it ({reason(error)}), "
            "so nothing is done"
        ) from error

    found = []
    for directory, below, names in os.walk(right, onerror=refuse):
        paths = [os.path.join(directory, name) for name in below]
        found += [*(path for path in paths if os.path.islink(path)), *(os.path.join(directory, name) for name in names)]
    return found


def _end_state(
    handed: Collection[_Handed], right: bytes, left: Sequence[bytes], top: RelPath, path_display: PathDisplay
) -> _EndState:
    """Return what was left in the directory ``right``; ``left`` are the paths of its files."""
    end = _EndState({}, {}, [], set())
    not_taken: list[tuple[RelPath, str]] = []
    known = {one.right for one in handed}
    for one in handed:
        now, change = _read(one.right), one.file.change
        picks = _picks(one, now)
        if now is None and one.right_before is not None and one.right_before not in known:
            picks = _picks_without_rename(one)
            if picks is not None:
                known.add(one.right_before)
        if isinstance(now, OSError):
            is_other = now.errno in _NO_REGULAR_FILE
            what = "is no longer a regular file" if is_other else f"cannot be read: {reason(now)}"
            not_taken.append((change.path, f": it {what}"))
            continue
        if picks is None and now is None:
            not_taken.append((change.path, ": to delete it was not staged; yolofs run -- rm does that"))
            continue
        if picks is None and change.new is None:
            not_taken.append((change.path, ": its deletion is staged, not a text; yolofs restore brings it back"))
            continue
        if now is not None and _has_other_mode(one) and _stages_that_mode(change):
            end.modes_back.add(change.path)
            picks = _without_mode(one.file, picks) if picks is not None else None
        elif now is not None and _has_other_mode(one):
            how = "not executable" if one.is_executable else "executable"
            text = f" with its new mode: the tool has made it {how}; yolofs run -- chmod does that"
            not_taken.append((change.path, text))
        if picks is None and now is not None:
            assert one.staged is not None
            end.edited.append((one.file, one.staged, now))
            continue
        if picks:
            end.selected[key_of(change)] = change, picks
        if rest := all_but([one.file], picks or {}):
            end.rest[key_of(change)] = change, rest
    beside = [path[len(right) + 1 :] for path in left if path not in known and not _is_backup(path, known)]
    not_taken += [(join(top, path), ": it was not handed out; yolofs run adds files") for path in beside]
    for path, text in not_taken[:_NAMED]:
        warn(f"{path_display.show_path(path)} is not taken{text}")
    if len(not_taken) > _NAMED:
        warn(f"… nor are {len(not_taken) - _NAMED} more")
    return end


def _has_other_mode(one: _Handed) -> bool:
    """Tell whether the tool has changed whether a file is executable; how it is open to others is
    the tool's own.
    """
    if one.staged is None:
        return False
    try:
        return bool(os.lstat(one.right).st_mode & stat.S_IXUSR) is not one.is_executable
    except OSError:
        return False


def _stages_that_mode(change: Change) -> bool:
    """Tell whether a change makes a file of base executable, or no longer so."""
    return change.old is not None and _is_executable(change.old) is not _is_executable(change.new)


def _without_mode(file: FileHunks, picks: Mapping[str, LineNumbers | None]) -> dict[str, LineNumbers | None]:
    modes = {hunk.id for hunk in file.hunks if hunk.kind is HunkKind.MODE}
    return {name: lines for name, lines in picks.items() if name not in modes}


def _picks(one: _Handed, now: bytes | OSError | None) -> dict[str, LineNumbers | None] | None:
    """Return what of a change makes what the tool has left, None if no part of it does."""
    if now == one.staged:
        return {hunk.id: None for hunk in one.file.hunks}
    if now == one.before:
        return {}
    if isinstance(now, bytes) and one.file.change.new is not None and not is_binary(now):
        return picks_for(one.before or b"", one.file, now)
    return None


def _picks_without_rename(one: _Handed) -> dict[str, LineNumbers | None] | None:
    """Return the picks for the text at the old path of a rename that the tool took back; the rename
    is not among them, and None means that no picks give this text.
    """
    picks = _picks(one, _read(one.right_before)) if one.right_before is not None else None
    renames = {hunk.id for hunk in one.file.hunks if hunk.kind is HunkKind.RENAMED}
    return None if picks is None else {name: lines for name, lines in picks.items() if name not in renames}


def _is_backup(path: bytes, known: Container[bytes]) -> bool:
    """Tell whether a file is what a tool keeps of one that it was given."""
    directory, name = os.path.split(path)
    fits = _BACKUPS.fullmatch(name)
    return fits is not None and any(
        os.path.join(directory, of) in known for of in (fits["of"], fits["of"].removeprefix(b"."))
    )


def _read(path_display: bytes) -> bytes | OSError | None:
    """Return what is in a file, None if there is none, or why it cannot be read."""
    try:
        with open(open_plain(path_display, os.O_RDONLY), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        return error


# ---- what is done with it


def _stage_edited(reader: Reader, end: _EndState, path_display: PathDisplay) -> bool:
    """Stage what was written in the tool, after asking; it is selected then.

    Raises:
        StaleHunkError: something has changed meanwhile; what was staged until then is said.
    """
    for file, *_ in end.edited[:_NAMED]:
        say(f"  {path_display.show_path(file.path)}: has a text that was not staged")
    if not ask(f"stage {len(end.edited)} edited file{'s' if len(end.edited) > 1 else ''}?"):
        return False
    staged: list[str] = []
    before: Generation | None = None
    for file, was, text in end.edited:
        try:
            _, done, _ = stage_edit(reader, file, file.hunks[0], was, text)
        except (YolofsError, OSError):
            if staged:
                say(f"staged before that: {', '.join(staged[:_NAMED])}; to undo it: yolofs travel {before}")
            raise
        staged.append(path_display.show_path(file.path))
        before = before if before is not None else done.before
    paths = {file.path for file, *_ in end.edited}
    for change in reader.compare().changes:
        if change.path in paths and change.new is not None:
            file = reader.hunks(change)
            picks: dict[str, LineNumbers | None] = {hunk.id: None for hunk in file.hunks}
            if change.path in end.modes_back:
                picks = _without_mode(file, picks)
                end.rest[key_of(change)] = change, all_but([file], picks)
            if picks:
                end.selected[key_of(change)] = change, picks
    return True


def _act(reader: Reader, end: _EndState, *, can_commit: bool) -> None:
    say(_selected_text(end))
    letters = ("c" if can_commit and end.selected else "") + ("d" if end.rest else "") + "q"
    words = {
        "c": "[c]ommit what is selected (the rest stays staged)",
        "d": "[d]rop what is not",
        "q": "[q]uit, and leave all staged",
    }
    match choose(f"{', '.join(words[letter] for letter in letters)}?", letters):
        case "c":
            _commit(reader, end)
        case "d":
            said, done, _ = drop_picked_hunks(reader, Drop(end.rest, f"{_count(end.rest)}", "", is_told=True), Stop())
            before = f"; to undo that: yolofs travel {done.before}" if done is not None else ""
            say(said.replace("; u takes it back", before, 1))
        case _:
            say("nothing done")


def _selected_text(end: _EndState) -> str:
    """Return how many changes are selected and how many not; one of which a part is counts once."""
    in_part = end.selected.keys() & end.rest.keys()
    if not in_part:
        return f"selected: {_count(end.selected)}; not selected: {_count(end.rest)}"
    selected, rest = end.selected.keys() - in_part, end.rest.keys() - in_part
    part, others = (
        ("a part of 1", "the rest of it") if len(in_part) == 1 else (f"parts of {len(in_part)}", "their rest")
    )
    chosen = f"{_count(selected)} and {part} more" if selected else part
    return f"selected: {chosen}; not selected: {_count(rest) + ' and ' if rest else ''}{others}"


def _commit(reader: Reader, end: _EndState) -> None:
    page = prepare_commit(reader, Prepare(end.selected, (), is_on_screen=False), Stop())
    for line in (page.title, *page.lines):
        say(line)
    if not page.question:
        raise UsageError("this cannot be committed as it is", hint="yolofs review")
    if not ask("commit that?"):
        say("nothing committed")
        return
    assert isinstance(page.prepared, PreparedCommit)
    say(commit_prepared(reader, page.prepared))


def _count(what: Sized) -> str:
    return f"{len(what)} change{'s' if len(what) != 1 else ''}"


def _is_directory(change: Change) -> bool:
    return all(side.type == stat.S_IFDIR for side in (change.old, change.new) if side is not None)
