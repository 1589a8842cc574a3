"""``yolofs commit -p``: one question for each hunk, at a terminal without a screen, as
``git add -p`` asks.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from yolofs.changes.changes import Change, ChangeKind
from yolofs.changes.hunks import FileHunks, HunkKind
from yolofs.changes.picks import LineNumbers
from yolofs.cli.commit.chunks import CONTEXT, Chunk, chunks_of, patch_lines, picks_of_answers, with_answers_carried
from yolofs.cli.commit.exclude import Excluded, divide_by_patterns, parse_excludes, unused_text
from yolofs.cli.commit.hunk_editing import edit_in_editor, stage_edited
from yolofs.cli.commit.named_paths import check_paths, say_nothing_staged
from yolofs.cli.output import emit, emit_bytes, has_colour, paint, read_answer, say
from yolofs.cli.project.project import reading, relative_paths
from yolofs.cli.show.hunk_lines import title
from yolofs.cli.show.listing import PathDisplay, say_left_out, without_scratch
from yolofs.cli.show.marking import marks_of
from yolofs.cli.show.patch_colour import PatchPainter
from yolofs.commit.select.selection import Selection
from yolofs.errors import StaleHunkError, YolofsError
from yolofs.hostcode.mark import Marks
from yolofs.os_errors import explain_os_error
from yolofs.paths import RelPath
from yolofs.session.selecting import Hunks
from yolofs.session.session import Session
from yolofs.state.regions import Region, Regions
from yolofs.state.tree import Tree
from yolofs.text.line_diff import split_lines

_HELP = """\
y - take this hunk
n - leave it staged
q - quit: leave this one and all that have no answer yet
a - take this one and all later ones of the file
d - leave this one and all later ones of the file
j - to the next one without an answer
J - to the next one
k - to the one before without an answer
K - to the one before
s - split it: into the hunks that it is made of, or a hunk into its lines
e - edit it: what comes back is staged
/ - to the next one that shows a line, or has a path, with a pattern (of Python)
? - this help"""


class Chosen(NamedTuple):
    """What was taken."""

    picks: dict[str, LineNumbers | None]
    paths: tuple[RelPath, ...]
    """The paths of the files of which something was taken: each has been shown."""
    paths_by_id: dict[str, str]
    """The files of which something was taken, as they were named, by the ids of what was."""
    was_asked: bool
    """Whether there was anything to ask about."""


def ask_about_hunks(
    project: bytes, typed: Sequence[bytes], *, excludes: Sequence[str] = (), scratch: bool, up_to: str | None = None
) -> Chosen:
    """Ask about each hunk at the paths that the user ``typed``, or all; what was edited meanwhile
    stays so.

    First come deletions, then changes outside the project, host code, and the rest.  Nothing is
    asked about what fits ``excludes``.  With ``up_to`` the hunks are of what the view showed at
    that generation, and are not edited.

    Raises:
        UsageError: a path is neither in the view nor in base, or lies outside base.
    """
    with reading(project) as session:
        paths = relative_paths(session, typed)
        new = session.state(session.timeline.resolve(up_to) if up_to is not None else None)
        hunks = Hunks(session, Tree(), new=new, paths=paths)
        say_nothing_staged(session, check_paths(session, paths, hunks.changes))
        found = _without_excluded(session, excludes, [hunks.changes[index] for index in hunks.wanted])
        changes = found if scratch or paths else without_scratch(found, session.regions)
        say_left_out(len(found) - len(changes))
        marks = marks_of(session, changes)
        regions = session.regions
        changes.sort(key=lambda change: _rank(regions, change, marks))
        path_display = PathDisplay(session.base.root, session.base.relative(session.project))
        chunks = [chunk for change in changes for chunk in chunks_of(hunks.read(change))]
        dialogue = _Dialogue(project, session.directory, hunks, chunks, path_display, marks, can_edit=up_to is None)
        dialogue.run()
    taken = [chunk for chunk in dialogue.chunks if chunk.is_taken]
    shown = tuple(dict.fromkeys(path for chunk in taken for path in chunk.file.change.paths))
    by_id = {hunk.id: path_display.show_path(hunk.path) for chunk in taken for hunk in chunk.file.hunks}
    return Chosen(picks_of_answers(taken), shown, by_id, bool(chunks))


def _without_excluded(session: Session, excludes: Sequence[str], changes: list[Change]) -> list[Change]:
    """Return the changes that no pattern fits; print the patterns that fit nothing."""
    selection = Selection(session.regions, frozenset(Region), excluded=parse_excludes(session, excludes))
    excluded = Excluded.of(selection, changes)
    for text in excluded.unused:
        say(unused_text(text))
    return divide_by_patterns(changes, excluded)[0]


def _rank(regions: Regions, change: Change, marks: Marks) -> int:
    if change.kind is ChangeKind.DELETED:
        return 0
    if regions.of_all(change.paths) is not Region.PROJECT:
        return 1
    if change.path in marks:
        return 2
    return 4 if _is_in_git(change) else 3


def _is_in_git(change: Change) -> bool:
    return all(b".git" in path.split(b"/") for path in change.paths)


class _Dialogue:
    """Asks, and keeps the answers."""

    def __init__(
        self,
        project: bytes,
        directory: bytes,
        hunks: Hunks,
        chunks: list[Chunk],
        path_display: PathDisplay,
        marks: Marks,
        *,
        can_edit: bool,
    ) -> None:
        self.chunks = chunks
        self._project = project
        self._directory = directory
        self._hunks = hunks
        self._place = path_display
        self._marks = marks
        self._can_edit = can_edit
        self._at = 0
        self._shown: FileHunks | None = None
        self._keys: dict[str, Callable[[], bool]] = {
            "y": lambda: self._answer(is_taken=True),
            "n": lambda: self._answer(is_taken=False),
            "a": lambda: self._answer_file(is_taken=True),
            "d": lambda: self._answer_file(is_taken=False),
            "j": lambda: self._go(1, only_open=True),
            "J": lambda: self._go(1, only_open=False),
            "k": lambda: self._go(-1, only_open=True),
            "K": lambda: self._go(-1, only_open=False),
            "s": self._split,
            "e": self._edit,
            "?": self._help,
        }

    def run(self) -> None:
        """Ask until each question has an answer, or the user quits."""
        is_to_show = True
        while any(chunk.is_taken is None for chunk in self.chunks):
            if is_to_show:
                self._show()
            word = read_answer(self._question())
            if word is None or word[:1] == "q":
                return
            if word[:1] == "/":
                is_to_show = self._search(word[1:])
            elif len(word) == 1 and word in self._keys:
                is_to_show = self._keys[word]()
            else:
                is_to_show = self._help()

    # ---- showing

    def _show(self) -> None:
        chunk = self.chunks[self._at]
        hunk = chunk.hunk
        line = title(hunk, self._place)
        marks = self._marks.get(hunk.path, ()) if chunk.file.change.new is not None else ()
        if marks:
            line += paint(f"  ({', '.join(mark.text for mark in marks)})", "red")
        emit(line)
        painter = PatchPainter(emit_bytes, has_colour=has_colour(sys.stdout))
        for text in patch_lines(chunk, self._texts(chunk), context=CONTEXT):
            painter(text if text.endswith(b"\n") else text + b"\n\\ No newline at end of file\n")

    def _texts(self, chunk: Chunk) -> tuple[list[bytes], list[bytes]] | None:
        if chunk.hunk.kind is not HunkKind.TEXT:
            return None
        texts = self._hunks.texts(chunk.file)
        return (split_lines(texts[0]), split_lines(texts[1])) if texts is not None else None

    def _question(self) -> str:
        chunk, letters = self.chunks[self._at], self._letters()
        known = {True: ", taken so far", False: ", left so far", None: ""}[chunk.is_taken]
        what = "this hunk" if len(chunk.parts) == 1 else f"these {len(chunk.parts)} hunks"
        return f"({self._at + 1}/{len(self.chunks)}{known}) take {what} [{','.join(letters)}]?"

    def _letters(self) -> list[str]:
        """Return the keys that do something here."""
        chunk = self.chunks[self._at]
        letters = ["y", "n", "q", "a", "d"]
        for one, all_of_them, step in (("j", "J", 1), ("k", "K", -1)):
            letters += [one] if self._next_place(step, only_open=True) is not None else []
            letters += [all_of_them] if self._next_place(step, only_open=False) is not None else []
        letters += ["s"] if chunk.can_split else []
        letters += ["e"] if self._can_edit and _can_edit(chunk) else []
        return [*letters, "/", "?"]

    def _help(self) -> bool:
        offered = self._letters()
        say("\n".join(line for line in _HELP.splitlines() if line[0] in offered))
        return False

    # ---- answering: each tells whether there is something else to be shown

    def _answer(self, *, is_taken: bool) -> bool:
        self.chunks[self._at].is_taken = is_taken
        return self._next_open()

    def _answer_file(self, *, is_taken: bool) -> bool:
        file = self.chunks[self._at].file
        for at in range(self._at, len(self.chunks)):
            chunk = self.chunks[at]
            if chunk.file is file and (at == self._at or chunk.is_taken is None):
                chunk.is_taken = is_taken
        return self._next_open()

    def _next_open(self) -> bool:
        """Go to the next question without an answer, from the beginning again at the end."""
        order = [*range(self._at + 1, len(self.chunks)), *range(self._at + 1)]
        self._at = next((at for at in order if self.chunks[at].is_taken is None), self._at)
        return True

    def _go(self, step: int, *, only_open: bool) -> bool:
        at = self._next_place(step, only_open=only_open)
        if at is None:
            what = "there is no further hunk" if step > 0 else "there is no hunk before"
            is_there = only_open and self._next_place(step, only_open=False) is not None
            say(f"{what} without an answer" if is_there else what)
            return False
        self._at = at
        return True

    def _next_place(self, step: int, *, only_open: bool) -> int | None:
        """Return where the next question is in one direction, None if there is none."""
        at = self._at + step
        while 0 <= at < len(self.chunks) and only_open and self.chunks[at].is_taken is not None:
            at += step
        return at if 0 <= at < len(self.chunks) else None

    def _split(self) -> bool:
        chunk = self.chunks[self._at]
        if not chunk.can_split:
            say("this hunk cannot be split")
            return False
        parts = chunk.split()
        self.chunks[self._at : self._at + 1] = parts
        say(f"split into {len(parts)}")
        return True

    def _search(self, text: str) -> bool:
        pattern = text or read_answer("search for:") or ""
        try:
            found = re.compile(pattern.encode(errors="surrogateescape")).search
        except re.error as error:
            say(f"that is no pattern: {error}")
            return False
        order = [*range(self._at + 1, len(self.chunks)), *range(self._at)]
        read: FileHunks | None = None
        texts: tuple[list[bytes], list[bytes]] | None = None
        for at in order if pattern else ():
            chunk = self.chunks[at]
            if chunk.file is not read and chunk.hunk.kind is HunkKind.TEXT:
                read, texts = chunk.file, self._texts(chunk)
            lines = itertools.islice(patch_lines(chunk, texts, context=CONTEXT), 1, None)
            if found(chunk.hunk.path) or any(found(line[1:]) for line in lines):
                self._at = at
                return True
        say("there is no other hunk with that")
        return False

    def _edit(self) -> bool:
        chunk = self.chunks[self._at]
        if not self._can_edit:
            say("hunks of an earlier generation are not edited")
            return False
        texts = self._hunks.texts(chunk.file) if _can_edit(chunk) else None
        if texts is None:
            say(_why_not_edited(chunk))
            return False
        try:
            text = edit_in_editor(chunk.hunk, texts, self._directory)
            if text is None or text == texts[1]:
                say("nothing is changed")
                return False
            stage_edited(self._project, chunk.file, chunk.hunk, text)
        except StaleHunkError:
            say(f"{self._place.show_path(chunk.file.path)} has changed since you were asked, so nothing is edited")
        except YolofsError as error:
            say(f"{error.message}{f' ({error.hint})' if error.hint else ''}")
            return False
        except OSError as error:
            what, hint = explain_os_error(error)
            say(f"{what}{f' ({hint})' if hint else ''}")
            return False
        self._read_anew(chunk.file)
        return True

    def _read_anew(self, file: FileHunks) -> None:
        """Ask about a file as it is now.  Hunks that have not changed keep their answers."""
        with reading(self._project) as session:
            self._hunks = Hunks(session, Tree(), paths=[file.path])
            here = (one for one in self._hunks.changes if one.path == file.path)
            edited = (one for one in here if one.kind is not ChangeKind.DELETED)  # which may be of what was there
            now = next(map(self._hunks.read, edited), None)
        old = [chunk for chunk in self.chunks if chunk.file is file]
        new = with_answers_carried(old, chunks_of(now)) if now is not None else []
        first = self.chunks.index(old[0])
        self.chunks[:] = [chunk for chunk in self.chunks if chunk.file is not file]
        self.chunks[first:first] = new
        self._at = first - 1
        self._next_open()
        self._at = max(0, self._at)


def _why_not_edited(chunk: Chunk) -> str:
    if len(chunk.parts) > 1:
        return "split it first (s), and edit one of its hunks"
    if not chunk.is_whole:
        return "a part of a hunk is not edited: answer for each, or leave (q) and ask anew to edit it whole"
    return "there is no text in this hunk that could be edited"


def _can_edit(chunk: Chunk) -> bool:
    return chunk.is_whole and chunk.hunk.kind in (HunkKind.TEXT, HunkKind.ADDED) and chunk.hunk.line_count > 0
