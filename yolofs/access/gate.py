"""Judges every access to the view by the rules, before the overlay carries it out
(``docs/design/gate.md``).

All of it runs on the thread that owns the view.  An access that a rule refuses raises
:class:`~yolofs.access.refusals.RefusedError`, one that somebody has to answer
:class:`~yolofs.access.refusals.UndecidedError`; after an answer the whole operation is tried again
inside :meth:`Gate.granting`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence

from yolofs.access.absent_names import AbsentNames
from yolofs.access.hiding import hidden_since
from yolofs.access.linked_names import LinkedNames
from yolofs.access.questions import Operation, Question, opens_all_names
from yolofs.access.refusals import RefusedError, UndecidedError
from yolofs.access.touches import Touch, errno_of_refusal, refuse
from yolofs.overlay import RENAME_EXCHANGE, BasePlaces, Invalidation, Overlay, may_write
from yolofs.overlay.inodes import Inode
from yolofs.paths import RelPath
from yolofs.rules import RuleBook, RuleIndex, RuleState, Verdict
from yolofs.rules.judgement import UNJUDGED, Judgement

Grant = tuple[bytes, bool]
"""What was allowed: :attr:`yolofs.access.questions.Question.key`."""

NOTED = 20_000
"""How many different accesses that rules allowed are kept in memory."""
_NOTED_BITS = {Operation.READ: 1, Operation.EXECUTE: 2, Operation.LIST: 4}
_LEADING_ON = frozenset([stat.S_IFDIR, stat.S_IFLNK])
"""The types of files that a path can lead through."""
FMODE_EXEC = 0x20
"""Set in the flags of an open(2) that the kernel does for execve(2) (``__FMODE_EXEC`` in
linux/fs.h).
"""


class Gate:
    """The rules of ``book``, applied to the inodes and names of ``overlay``."""

    def __init__(self, overlay: Overlay, book: RuleBook, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` tells seconds."""
        self._overlay = overlay
        self.book = book
        self._granted: frozenset[Grant] = frozenset()
        self.noted: dict[tuple[bytes, Operation], None] = {}
        """What rules let be read, executed and listed, each once, the first :data:`NOTED` of it."""
        self._linked_names = LinkedNames(overlay.base, clock)
        self.absent_names = AbsentNames(clock)
        """The hidden names that :meth:`replace_rules` has the kernel forget."""
        overlay.inodes.watch_directories(self._directory_moved)

    @contextlib.contextmanager
    def granting(self, granted: frozenset[Grant]) -> Iterator[None]:
        """Allow what was ``granted`` while the block runs; the block must not await."""
        self._granted = granted
        try:
            yield
        finally:
            self._granted = frozenset()

    # ---- verdicts

    def verdict(self, inode: Inode) -> Verdict:
        """Return the verdict over the name under which an inode was last seen; O(1) while the rules
        stay.
        """
        version = self.book.version
        if inode.judgement.version == version:
            return inode.judgement.verdict
        unjudged = []
        current = inode
        while current.judgement.version != version and current.parent is not None:
            unjudged.append(current)
            current = current.parent
        if current.judgement.version != version:
            current.judgement = Judgement(self.book.at(self._overlay.base.root), version)
        judgement = current.judgement
        for current in reversed(unjudged):
            verdict = self.book.below(judgement.verdict, current.name)
            if verdict is not judgement.verdict:
                judgement = Judgement(verdict, version)
            current.judgement = judgement
        return judgement.verdict

    def verdict_below(self, directory: Inode, name: bytes) -> Verdict:
        """Return the verdict over a name in a directory, whether it shows anything or not."""
        return self.book.below(self.verdict(directory), name)

    def is_open(self, question: Question) -> bool:
        """Tell whether the rules leave a question to be asked, as they are by now."""
        return question.is_still_asked_under(self.book.at(question.path))

    # ---- what is looked at

    def shows(self, directory: Inode, name: bytes) -> bool:
        """Tell whether a name may be looked up; else it seems not to exist."""
        book = self.book
        judged = directory.judgement
        verdict = judged.verdict if judged.version == book.version else self.verdict(directory)
        return book.shows(verdict, name)

    def shown(self, directory: Inode, names: list[bytes]) -> list[bytes]:
        """Return those of a directory's ``names`` that may be looked up."""
        if not self.book.hides:
            return names
        verdict, shows = self.verdict(directory), self.book.shows
        return [name for name in names if shows(verdict, name)]

    def counts_links(self, inode: Inode) -> bool:
        """Tell whether the link count of a file may be told: a directory's tells how many are in
        it.
        """
        if not inode.is_directory:
            return True
        judged = inode.judgement
        verdict = judged.verdict if judged.version == self.book.version else self.verdict(inode)
        return not verdict.hides_inside

    def check_stat(self, inode: Inode) -> None:
        """Raise unless attributes may be read: under one of its names, or because it is open
        already.

        Raises:
            RefusedError: ENOENT, as rules hide all of its names.
        """
        judged = inode.judgement
        verdict = judged.verdict if judged.version == self.book.version else self.verdict(inode)
        if not verdict.seems_absent or (inode.opens and not inode.is_directory):
            return
        if all(at.seems_absent for _, at in self._names(inode, verdict)):
            raise RefusedError(errno.ENOENT, Question(self._path(inode), Operation.READ, verdict.state, verdict.rule))

    def check_list(self, inode: Inode) -> None:
        """Raise unless a directory may be listed.

        Raises:
            RefusedError: the rules forbid it.
        """
        judged = inode.judgement
        verdict = judged.verdict if judged.version == self.book.version else self.verdict(inode)
        if not (verdict.may_list or verdict.is_way):
            path = self._path(inode)
            number = errno_of_refusal([(path, verdict)])
            raise RefusedError(number, Question(path, Operation.LIST, verdict.state, verdict.rule))
        if not inode.noted & 4:
            self._note(inode, Operation.LIST)

    def check_read(self, inode: Inode, operation: Operation = Operation.READ) -> None:
        """Raise unless the content may be read, by each name of the file that was looked up.

        Raises:
            RefusedError: the rules forbid it by one of the names.
            UndecidedError: no rule settles it at one of them.
        """
        judged = inode.judgement
        verdict = judged.verdict if judged.version == self.book.version else self.verdict(inode)
        if verdict.may_read and not _is_linked(inode):
            return
        names = list(self._names(inode, verdict))
        for path, at in names:
            if not (at.may_read or at.asks_to_read):
                raise RefusedError(errno_of_refusal(names), Question(path, operation, at.state, at.rule))
        for path, at in names:
            if at.asks_to_read and (path, False) not in self._granted:
                raise UndecidedError(Question(path, operation, at.state, at.rule))

    def check_open(self, inode: Inode, flags: int) -> None:
        """Raise unless a file may be opened with the flags of open(2)."""
        operation = Operation.EXECUTE if flags & FMODE_EXEC else Operation.READ
        if may_write(flags) or flags & os.O_TRUNC:
            self.check_change(inode, Operation.WRITE)  # whoever may write may read, and so may who was allowed to once
            if flags & os.O_ACCMODE == os.O_WRONLY:
                return
        else:
            self.check_read(inode, operation)
        if not inode.noted & (2 if flags & FMODE_EXEC else 1) and not self._granted:
            self._note(inode, operation)

    # ---- what is changed

    def check_change(self, inode: Inode, operation: Operation) -> None:
        """Raise unless a file may be changed, whichever of its names it was reached by."""
        judged = inode.judgement
        verdict = judged.verdict if judged.version == self.book.version else self.verdict(inode)
        if not verdict.may_write or _is_linked(inode):
            changes = self._changes(inode, verdict, operation)
            self._require_all_names(inode, operation, changes, errno_of_refusal(changes))

    def check_times(self, inode: Inode) -> None:
        """Raise unless a file's times may be set, and nothing else of it.

        They are no content.  So if one of its known names may be changed, nobody is asked about the
        others; one that a rule refuses still refuses.
        """
        judged = inode.judgement
        verdict = judged.verdict if judged.version == self.book.version else self.verdict(inode)
        if verdict.may_write and not _is_linked(inode):
            return
        changes = self._changes(inode, verdict, Operation.METADATA)
        if not any(touch.verdict.may_write for touch in changes):
            self._require_all_names(inode, Operation.METADATA, changes, errno_of_refusal(changes))
            return
        refuse(changes, errno_of_refusal(changes))
        if inode.home is not None and inode.has_links_in_base and self.book.guards_writing:
            refuse(self._other_names_in_base(inode, inode.home, Operation.METADATA, changes)[0])

    def check_create(self, directory: Inode, name: bytes) -> None:
        """Raise unless a name may be made."""
        verdict = self.verdict_below(directory, name)
        if not verdict.may_write:
            self._require([self._new(directory, name, verdict, Operation.CREATE)])

    def check_mkdir(self, directory: Inode, name: bytes, mode: int) -> None:
        """Raise unless a directory may be made.

        Nobody is asked about a directory on the way to a path of the built-in rules, such as
        ``~/.local``: it is empty, and its later content is judged by itself.  Not one that others
        may write to.
        """
        verdict = self.verdict_below(directory, name)
        if not verdict.may_write and not (verdict.leads_to_built_in and not mode & 0o7022):
            self._require([self._new(directory, name, verdict, Operation.CREATE)])

    def check_symlink(self, directory: Inode, name: bytes) -> None:
        """Raise unless a symbolic link may be made."""
        verdict = self.verdict_below(directory, name)
        self._check_no_rule_bypassed(directory, name, verdict, Operation.CREATE, is_link=True)
        self._check_no_new_link(directory, name, verdict, Operation.CREATE)
        if not verdict.may_write:
            self._require([self._new(directory, name, verdict, Operation.CREATE)])

    def check_remove(self, directory: Inode, name: bytes) -> None:
        """Raise unless a name may be removed, with what rules there are for paths below it."""
        verdict = self.verdict_below(directory, name)
        is_named = verdict.node is not None and not verdict.seems_absent
        if is_named and (kind := self._kind(directory, name)) in _LEADING_ON:
            self._check_no_rule_bypassed(directory, name, verdict, Operation.DELETE, is_link=kind == stat.S_IFLNK)
        if not verdict.may_write:
            changes = [self._old(directory, name, verdict, Operation.DELETE)]
            self._require(changes, errno_of_refusal(changes))

    def check_rename(self, parent: Inode, name: bytes, new_parent: Inode, new_name: bytes, flags: int) -> None:
        """Raise unless a name may become another: both are changed, and nothing leaves the rules
        below it.
        """
        source, target = self.verdict_below(parent, name), self.verdict_below(new_parent, new_name)
        if source.seems_absent:
            self._require([self._old(parent, name, source, Operation.RENAME)], errno.ENOENT)
        if flags & RENAME_EXCHANGE and target.seems_absent:
            self._require([self._old(new_parent, new_name, target, Operation.RENAME)], errno.ENOENT)
        if source.node is not None or target.node is not None:
            kind, new_kind = self._kind(parent, name), self._kind(new_parent, new_name)
            if not _LEADING_ON.isdisjoint((kind, new_kind)):
                is_link = stat.S_IFLNK in (kind, new_kind)
                self._check_no_rule_bypassed(parent, name, source, Operation.RENAME, is_link=is_link)
                self._check_no_rule_bypassed(new_parent, new_name, target, Operation.RENAME, is_link=is_link)
            if kind == stat.S_IFLNK:
                self._check_no_new_link(new_parent, new_name, target, Operation.RENAME)
            if flags & RENAME_EXCHANGE and new_kind == stat.S_IFLNK:
                self._check_no_new_link(parent, name, source, Operation.RENAME)
        touches = []
        if not (source.may_write and target.may_write):
            leaves = self._old(parent, name, source, Operation.RENAME)
            touches = [leaves, self._old(new_parent, new_name, target, Operation.RENAME)]
        refuse(touches)
        self._check_patterns_stay(parent, name, source, target)
        if flags & RENAME_EXCHANGE:
            self._check_patterns_stay(new_parent, new_name, target, source)
        self._ask(touches)

    def check_link(self, inode: Inode, directory: Inode, name: bytes) -> None:
        """Raise unless a file may get one more name: whoever has that name can change the file."""
        verdict, new = self.verdict(inode), self.verdict_below(directory, name)
        if inode.kind == stat.S_IFLNK:
            self._check_no_rule_bypassed(directory, name, new, Operation.LINK, is_link=True)
            self._check_no_new_link(directory, name, new, Operation.LINK)
        if not verdict.may_write or not new.may_write or _is_linked(inode):
            changes = self._changes(inode, verdict, Operation.LINK)
            touches = [*changes, self._new(directory, name, new, Operation.LINK)]
            self._require_all_names(inode, Operation.LINK, touches, errno_of_refusal(changes))

    # ---- other rules

    def replace_rules(self, index: RuleIndex) -> Callable[[], Invalidation]:
        """Put other rules in force.

        Returns a function that finds the names that the kernel must forget, as they are hidden
        now, or were and may not be any more.  It walks over all known inodes, so it is for another
        thread.
        """
        before = self.book.sources
        self.book.adopt(index)
        told = self.absent_names.pop_all()

        def stale() -> Invalidation:
            found = hidden_since(before, self.book, self._overlay)
            found.entries.extend(told)
            return found

        return stale

    # ---- inside

    def _note(self, inode: Inode, operation: Operation) -> None:
        """Note that rules allow an access, for whoever wants to try other rules on it."""
        inode.noted |= _NOTED_BITS[operation]
        if len(self.noted) < NOTED:
            self.noted[self._path(inode), operation] = None

    def _names(self, inode: Inode, verdict: Verdict) -> Iterator[tuple[bytes, Verdict]]:
        """Yield every path by which an inode can be reached, with the verdict over it.

        The kernel does not say by which of its names a file was opened, so all of them have to
        agree.  One that is gone has no say.
        """
        if not _is_linked(inode):
            yield self._path(inode), verdict
            return
        overlay, staged = self._overlay, inode.staged
        paths = {self._path(inode)}
        paths.update(overlay.base.path(entry.path()) for entry in (staged.names if staged is not None else ()))
        for parent, name in overlay.inodes.other_names(inode):
            is_free = self.verdict_below(parent, name).may_write and not verdict.seems_absent  # whatever it leads to
            if is_free or overlay.still_leads(parent, name, inode):
                paths.add(self._path_below(parent, name))
        for path in sorted(paths):
            yield path, self.book.at(path)

    def _require_all_names(self, inode: Inode, operation: Operation, touches: list[Touch], number: int) -> None:
        """Raise unless all paths may be changed, and all names that base has for a file which the
        change would reach.

        They are looked for near the file.  If some are not found, somebody has to be asked: they
        may be anywhere.  A rule for just this file has answered that.  ``number`` is the errno of a
        refusal of one of ``touches``.
        """
        refuse(touches, number)
        home = inode.home
        if home is None or not inode.has_links_in_base or not self.book.guards_writing:
            self._ask(touches)
            return
        others, is_complete = self._other_names_in_base(inode, home, operation, touches)
        refuse(others)
        self._ask([*touches, *others])
        path = self._overlay.base.path(home)
        if is_complete or (path, True) in self._granted:
            return
        verdict = self.book.at(path)
        if not opens_all_names(verdict.rule, path):
            raise UndecidedError(Question(path, operation, RuleState.WRITE_ASK, verdict.rule, self._size(inode)))

    def _other_names_in_base(
        self, inode: Inode, home: RelPath, operation: Operation, touches: Sequence[Touch]
    ) -> tuple[list[Touch], bool]:
        """Return what a change touches of the names that base has for a file, without ``touches``,
        and whether all of its names were found.
        """
        found, is_complete = self._linked_names.of(home)
        places = BasePlaces(self._overlay.tree)
        shown = {place for rel in found if (place := places.path_of(rel)) is not None}  # what was renamed is elsewhere
        known = {touch.path for touch in touches}
        others = [
            Touch(path, self.book.at(path), operation, lambda: self._size(inode))
            for path in map(self._overlay.base.path, sorted(shown.union(found)))
            if path not in known
        ]
        return others, is_complete

    def _changes(self, inode: Inode, verdict: Verdict, operation: Operation) -> list[Touch]:
        """Return what a change of a file touches: all of its names."""
        return [Touch(path, at, operation, lambda: self._size(inode)) for path, at in self._names(inode, verdict)]

    def _old(self, directory: Inode, name: bytes, verdict: Verdict, operation: Operation) -> Touch:
        """Return the touch of a name that something may be at."""
        return Touch(self._path_below(directory, name), verdict, operation, lambda: self._size_at(directory, name))

    def _new(self, directory: Inode, name: bytes, verdict: Verdict, operation: Operation) -> Touch:
        """Return the touch of a name that nothing is at."""
        return Touch(self._path_below(directory, name), verdict, operation, lambda: None)

    def _require(self, touches: Sequence[Touch], number: int = errno.EACCES) -> None:
        """Raise unless all paths may be changed.  Nobody is asked about one path if another is
        refused anyway.
        """
        refuse(touches, number)
        self._ask(touches)

    def _ask(self, touches: Sequence[Touch]) -> None:
        """Raise if somebody has to answer first whether a path may be changed."""
        questions = [
            Question(path, operation, verdict.state, verdict.rule, size())
            for path, verdict, operation, size in touches
            if not verdict.may_write and (path, True) not in self._granted
        ]
        if questions:
            raise UndecidedError(*questions)

    def _check_no_rule_bypassed(
        self, directory: Inode, name: bytes, verdict: Verdict, operation: Operation, *, is_link: bool
    ) -> None:
        """Raise if a rule below a name protects more than what protects the name itself.

        A directory there must not go away, nor a symbolic link (``is_link``) come or go: the rule's
        path would lead elsewhere.
        """
        rule = verdict.astray_by_link() if is_link else verdict.stricter_below()
        if rule is not None:
            raise RefusedError(errno.EACCES, Question(self._path_below(directory, name), operation, rule.state, rule))

    def _check_no_new_link(self, directory: Inode, name: bytes, verdict: Verdict, operation: Operation) -> None:
        """Raise if a symbolic link that comes to a name would take a rule elsewhere when links are
        followed next.
        """
        rule = verdict.led_by_new_link()
        if rule is not None:
            raise RefusedError(errno.EACCES, Question(self._path_below(directory, name), operation, rule.state, rule))

    def _check_patterns_stay(self, directory: Inode, name: bytes, old: Verdict, new: Verdict) -> None:
        """Raise if a directory would leave patterns that guard what may be in it, or come under
        other ones.

        The same if a link in it could come to where a rule's path leads through.  The error is that
        of a rename between two disks: a program then moves it file by file, and each is judged.
        """
        rule = old.pattern_lost(new) or old.pattern_gained(new) or self.book.pattern_closing(old, new)
        rule = rule or new.led_by_link_inside()
        if rule is not None and self._kind(directory, name) == stat.S_IFDIR:
            path = self._path_below(directory, name)
            raise RefusedError(errno.EXDEV, Question(path, Operation.RENAME, rule.state, rule))

    def _size(self, inode: Inode) -> int | None:
        """Return the size of a regular file in bytes, None for anything else."""
        return self._overlay.getattr(inode).size if inode.kind == stat.S_IFREG else None

    def _size_at(self, directory: Inode, name: bytes) -> int | None:
        st = self._overlay.stat_name(directory, name)
        return st.st_size if st is not None and stat.S_ISREG(st.st_mode) else None

    def _kind(self, directory: Inode, name: bytes) -> int:
        """Return the type of what is at a name, 0 if there is nothing."""
        st = self._overlay.stat_name(directory, name)
        return stat.S_IFMT(st.st_mode) if st is not None else 0

    def _path(self, inode: Inode) -> bytes:
        """Return the absolute path under which an inode was last seen, also if it is gone from
        there.
        """
        names = []
        while inode.parent is not None:
            names.append(inode.name)
            inode = inode.parent
        return self._overlay.base.path(b"/".join(reversed(names)))

    def _path_below(self, directory: Inode, name: bytes) -> bytes:
        path = self._path(directory)
        return (b"" if path == b"/" else path) + b"/" + name

    def _directory_moved(self, directory: Inode) -> None:
        """Void the verdicts over what lies in a directory that got another place, unless they stay
        the same.

        If the directory itself has no verdict, nothing in it has one.
        """
        if directory.judgement.version != self.book.version:
            return
        before = directory.judgement.verdict
        directory.judgement = UNJUDGED
        after = self.verdict(directory)
        has_rules = before.node is not None or after.node is not None
        if has_rules or before.rule is not after.rule or not before.has_patterns_of(after):
            self.book.touch()


def _is_linked(inode: Inode) -> bool:
    """Tell whether a file has, or may have, more names than one."""
    staged = inode.staged
    return (staged is not None and len(staged.names) > 1) or inode.has_links_in_base
