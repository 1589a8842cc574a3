"""The files that rules come from: reading them, and changing the one that yolofs writes by itself.

``.yolofs.toml`` and the user's own file are never written to.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from yolofs.config.learned import LEARNED_FILE, learned_file, learned_rules_locked, read_learned, write_learned
from yolofs.config.lines import Meaning, key_lines
from yolofs.config.load import FILE_NAME, dangling_link, load_file, user_file
from yolofs.config.settings import RuleLine, Settings, UserRunSettings, UserSettings
from yolofs.config.trust import WaitingLine, with_lines
from yolofs.errors import ConfigError
from yolofs.paths import display, in_shell
from yolofs.registry.trust import (
    Agreed,
    Agreements,
    Loaded,
    content_hash,
    in_force,
    load_in_force,
    read_agreements,
    remember,
)
from yolofs.rules import Level, Rule, RuleSet, RuleState, RuleSubject, Sources, parse_rules, spell_rule, subject
from yolofs.rules.linked_keys import follow_links, rules_near, waypoints
from yolofs.rules.trusted import NOT_JUDGED, TrustedRules, remaining
from yolofs.system.symlinks import HostLinks

FILES = (Level.LEARNED, Level.PROJECT, Level.USER)
"""The sources that are files."""
_MEND = "repair it, or move it away and start afresh"


_NOTHING = Loaded(Settings.defaults(), Settings.defaults(), (), b"")
_NO_AGREEMENTS = Agreements(Agreed())


class AskSettings(msgspec.Struct, frozen=True):
    """What becomes of an ask that nobody answers."""

    timeout_s: float
    default: str
    """ "deny" or "allow"."""
    unattended_s: float = Settings.defaults().ask_unattended
    """How long what a run asks waits where nobody watches."""
    notify: str = ""
    """The shell command that tells the user of an ask; empty for none."""


class _Content(msgspec.Struct, frozen=True):
    """What a file said when it was last in order."""

    rules: RuleSet
    """All of them, whether they hold or not."""
    preset: str = "auto"
    asks: AskSettings | None = None
    loaded: Loaded = _NOTHING
    """Of the project's file."""
    agreements: Agreements = _NO_AGREEMENTS
    """About the project's file."""
    notify: str = ""
    """Of the user's file."""
    run_tmp: str = UserRunSettings().tmp
    """Of the user's file."""


class FileState(NamedTuple):
    """What tells one state of a file from another."""

    device: int
    number: int
    size: int
    ctime_ns: int
    """Or what keeps it from being read: a negative errno."""

    @property
    def is_empty(self) -> bool:
        """Whether it can be read, and there is nothing to read."""
        return not self.size and self.ctime_ns >= 0


def file_state(path: bytes) -> FileState | None:
    """Return the state of a file, None if there is none.  What cannot be read, or found behind a
    link, is not gone.
    """
    try:
        st = os.stat(path)
    except OSError as error:
        if error.errno == errno.ENOENT and dangling_link(path) is None:
            return None
        return FileState(0, 0, 0, -(error.errno or 0))
    return FileState(st.st_dev, st.st_ino, st.st_size, st.st_ctime_ns)


class RuleFiles:
    """The rules of one project as its files have them; a file that is not in order leaves its last
    good rules in force.

    Not for several threads at once.
    """

    def __init__(self, project: bytes, directory: bytes, home: bytes | None = None) -> None:
        """``project`` is absolute and has no links in it, ``directory`` that of its session;
        nothing is read yet.
        """
        self.project = project
        self.directory = directory
        self.home = os.path.abspath(home if home is not None else os.path.expanduser(b"~"))
        self.paths = {
            Level.LEARNED: learned_file(directory),
            Level.PROJECT: os.path.join(project, os.fsencode(FILE_NAME)),
            Level.USER: user_file(self.home),
        }
        self.problems: dict[Level, str] = {}
        """What is wrong with the files that are not in order, one line each."""
        self._contents = dict.fromkeys(FILES, _Content(RuleSet()))
        self.states: dict[Level, FileState | None] = dict.fromkeys(FILES)
        """How each file was when it was read last."""

    def load(self) -> None:
        """Read all files.

        Raises:
            ConfigError: one of them is not in order.
        """
        for level in FILES:
            self._contents[level] = self._read(level)
        self.problems = {}

    def are_as_read(self) -> bool:
        """Tell whether the files are those that were read last."""
        return all(file_state(self.paths[level]) == state for level, state in self.states.items())

    def reload(self) -> bool:
        """Read all files again; return whether any rule is another now, or :attr:`problems` are."""
        before = dict(self._contents), self.problems
        self.problems = {}
        for level in FILES:
            try:
                self._contents[level] = self._read(level)
            except ConfigError as error:
                self.problems[level] = error.message
        return before != (self._contents, self.problems)

    @property
    def asks(self) -> AskSettings:
        """What ``.yolofs.toml`` says of asks, and the user's own file of ``notify``."""
        asks = self._contents[Level.PROJECT].asks or _asks_of(Settings.defaults())
        return msgspec.structs.replace(asks, notify=self._contents[Level.USER].notify)

    @property
    def run_tmp(self) -> str:
        """What runs have as ``/tmp`` by the user's own file: "private" or "view"."""
        return self._contents[Level.USER].run_tmp

    def sources(self, answers: RuleSet = RuleSet()) -> Sources:  # noqa: B008 - it is frozen
        """Return the rules of all sources, those that links add among them, and what waits to be
        agreed to.

        ``answers`` are for this session only.  They are about the very paths that were asked about,
        be there a link.  Of the rules of ``.yolofs.toml`` those are there that hold.
        """
        contents = self._contents
        written = {level: contents[level].rules for level in FILES} | {Level.PRESET: self._preset()}
        target_of = HostLinks().target
        of_tree = written.pop(Level.PROJECT)
        followed = {level: follow_links(rules, self.project, target_of) for level, rules in written.items()}
        others = {Level.SESSION: answers} | {level: one.rules for level, one in followed.items()}
        agreed, loaded = contents[Level.PROJECT].agreements.agreed, contents[Level.PROJECT].loaded
        waiting = loaded.waiting
        if of_tree.rules:
            parted = TrustedRules.find(
                loaded.written.rules, of_tree.rules, others, agreed, self.project, self.home, target_of
            )
            of_tree = parted.in_force
            waiting += parted.waiting
        followed[Level.PROJECT] = follow_links(of_tree, self.project, target_of)
        notes = [note for level in (*FILES, Level.PRESET) for note in followed[level].notes]
        if waiting and contents[Level.PROJECT].agreements.problem:
            notes.append(f"what you agreed to does not count: {contents[Level.PROJECT].agreements.problem}")
        by_level = others | {Level.PROJECT: followed[Level.PROJECT].rules}
        return Sources(MappingProxyType(by_level), tuple(notes), waiting)

    def hiding_near(self, paths: Collection[bytes]) -> tuple[RuleSet, ...]:
        """Return rules, nearest first, that hide each of some absolute paths that :meth:`sources`
        hide.  They may hide others, too.

        That takes a third of the time.  Of ``.yolofs.toml`` all rules are looked at, whether they
        hold or not.
        """
        target_of = HostLinks().target
        hiding = [
            [rule for rule in self._contents[level].rules.rules if rule.state is RuleState.HIDDEN] for level in FILES
        ]
        hiding.append([*self._preset(hiding_only=True).rules])
        return tuple(RuleSet(rules_near(rules, paths, target_of)) for rules in hiding)

    def _preset(self, *, hiding_only: bool = False) -> RuleSet:
        """Return the built-in rules, none if the settings do without."""
        words = (self._contents[Level.PROJECT].preset, self._contents[Level.USER].preset)
        if next((word for word in words if word != "auto"), UserSettings().preset) != "standard":
            return RuleSet()
        from yolofs.rules.preset import installation, preset_rules  # long, and most commands do without

        config_dir = os.path.dirname(self.paths[Level.USER])
        if b".." in config_dir.split(b"/"):
            config_dir = os.path.realpath(config_dir)
        return preset_rules(self.project, self.home, os.getuid(), installation(), config_dir, hiding_only=hiding_only)

    # ---- what the user has to agree to

    def lines_to_agree_to(self, answers: RuleSet = RuleSet()) -> tuple[WaitingLine, ...]:  # noqa: B008 - it is frozen
        """Return the lines that have to be agreed to for the whole file to be in force, in its
        order.

        These may be more than wait now: a rule that opens nothing while the built-in rules hold may
        do so without them.
        """
        content = self._contents[Level.PROJECT]
        found: dict[tuple[Meaning, ...], WaitingLine] = {}
        try:
            while more := [one for one in self.sources(answers).waiting if one.meanings not in found]:
                if found:
                    more = [_in_force_now(one) for one in more]
                found |= {one.meanings: one for one in more}
                self._assume(_agreed_with(self._contents[Level.PROJECT].agreements.agreed, more))
        finally:
            self._contents[Level.PROJECT] = content
        if not found:
            return ()
        lines = key_lines(content.loaded.text.decode().replace("\r\n", "\n"))
        return tuple(sorted(with_lines(found.values(), lines), key=lambda one: (one.line or 0, one.key)))

    def agree(self, waiting: Iterable[WaitingLine]) -> int:
        """Remember that the user agrees to some lines, and put them in force here; return how many
        earlier agreements were dropped.

        Those are about what the file does not hold any more.

        Raises:
            TrustError: it cannot be remembered, or another process has remembered something since
                the files were read.
            OSError: it cannot be remembered.
        """
        content = self._contents[Level.PROJECT]
        # If nothing could wait, they were not read, and nothing was shown: the present agreements
        # count.
        is_unread = content.agreements is _NO_AGREEMENTS
        before = read_agreements(self.directory).agreed if is_unread else content.agreements.agreed
        new = frozenset[Meaning]().union(*(one.meanings for one in waiting))
        target_of = HostLinks().target
        plain = in_force(self.project, content.loaded.written, b"", Agreed()).waiting
        of_plain = frozenset[Meaning]().union(*(one.meanings for one in plain))
        of_rules, closed = remaining(content.rules.rules, before.meanings | new, self.project, target_of)
        kept = (before.meanings & of_plain) | of_rules | new
        agreed = Agreed(kept, closed, content_hash(content.loaded.text))
        if agreed != before:
            remember(self.directory, agreed, before)
        self._assume(agreed)
        return len(before.meanings - kept)

    @property
    def agreed_problem(self) -> str:
        """Why it cannot be told what the user has agreed to, if it cannot."""
        return self._contents[Level.PROJECT].agreements.problem

    @property
    def text(self) -> bytes:
        """The project's file as it was read."""
        return self._contents[Level.PROJECT].loaded.text

    @property
    def agreed(self) -> Agreed:
        """What the user has agreed to, as it was when the files were read."""
        return self._contents[Level.PROJECT].agreements.agreed

    def _assume(self, agreed: Agreed) -> None:
        """Take what the project's file says, as it was read, with other agreements."""
        loaded = self._contents[Level.PROJECT].loaded
        loaded = in_force(self.project, loaded.written, loaded.text, agreed)
        self._contents[Level.PROJECT] = self._content_of(loaded, Agreements(agreed))

    # ---- the learned rules

    def learn(self, *rules: Rule) -> None:
        """Write rules to ``rules.toml``, in place of those about the same, and take up what else
        has changed there.

        All of them are written, in one step, or none.

        Raises:
            ConfigError: the file is not in order, so it cannot be changed; it cannot be written; or
                one of ``rules`` is a pattern that is not UTF-8.
        """
        try:
            keys = {subject(rule): spell_rule(rule, self.project) for rule in rules}
        except UnicodeDecodeError:
            raise ConfigError("a pattern has to be UTF-8", hint="name the path itself") from None
        with self._changing():
            lines = self._learned()
            lines |= {subject(rule): (keys[subject(rule)], rule.state.value) for rule in rules}
            self._write_learned(dict(lines.values()))

    def forget(self, rule: Rule) -> bool:
        """Remove the learned rule that is about the same as ``rule`` from ``rules.toml``; return
        whether there was one.

        Raises:
            ConfigError: as for :meth:`learn`.
        """
        with self._changing():
            lines = self._learned()
            found = lines.pop(subject(rule), None)
            if found is not None:
                self._write_learned(dict(lines.values()))
        return found is not None

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        try:
            with learned_rules_locked(self.directory):
                yield
        except OSError as error:
            raise ConfigError(
                f"{LEARNED_FILE}: cannot be written: {error.strerror}",
                hint=f"see why: ls -l {in_shell(self.directory)}",
            ) from error

    def _learned(self) -> dict[RuleSubject, tuple[str, str]]:
        """Return key and state of each learned rule, as the file has them now."""
        try:
            lines = read_learned(self.directory)
            rules = self._parse(lines, LEARNED_FILE).rules
        except ConfigError as error:
            raise ConfigError(error.message, hint=_MEND) from None
        return {subject(rule): (line.key, line.state) for rule, line in zip(rules, lines, strict=True)}

    def _write_learned(self, keys: Mapping[str, str]) -> None:
        write_learned(self.directory, keys.items())
        self._contents[Level.LEARNED] = self._read(Level.LEARNED)
        self.problems.pop(Level.LEARNED, None)

    # ---- reading

    def _read(self, level: Level) -> _Content:
        self.states[level] = file_state(self.paths[level])  # before: what changes meanwhile is another state
        if level is Level.LEARNED:
            return _Content(self._parse(read_learned(self.directory), LEARNED_FILE))
        path = self.paths[level]
        if level is Level.USER:
            user = load_file(path, display(path), UserSettings)
            rules = parse_rules(user.rules, None, self.home, file_name=display(path))
            return _Content(rules, user.preset, notify=user.notify, run_tmp=user.run.tmp)
        loaded = load_in_force(self.project, self.directory, agreed=Agreed())
        if not (loaded.waiting or loaded.written.rules):
            return self._content_of(loaded, _NO_AGREEMENTS)
        agreements = read_agreements(self.directory)
        loaded = in_force(self.project, loaded.written, loaded.text, agreements.agreed)
        return self._content_of(loaded, agreements)

    def _content_of(self, loaded: Loaded, agreements: Agreements) -> _Content:
        rules = self._parse(loaded.written.rules, FILE_NAME)
        return _Content(rules, loaded.settings.preset, _asks_of(loaded.settings), loaded, agreements)

    def _parse(self, lines: tuple[RuleLine, ...], name: str) -> RuleSet:
        return parse_rules(lines, self.project, self.home, file_name=name)


def _agreed_with(agreed: Agreed, waiting: Iterable[WaitingLine]) -> Agreed:
    return Agreed(agreed.meanings.union(*(one.meanings for one in waiting)), agreed.closed)


def _in_force_now(one: WaitingLine) -> WaitingLine:
    """Return a line that waits only when others are agreed to, with what is to be said of it."""
    if not one.opens.startswith(NOT_JUDGED):
        return one
    return one._replace(
        opens=f"{NOT_JUDGED}; it holds now, and beside the other lines only if you agree (yolofs trust)"
    )


def with_waypoints(sources: Sources) -> Sources:
    """Return the rules of a mount, as a client has them, with their waypoints, which do not
    travel.
    """
    target_of = HostLinks().target
    by_level = dict(sources.by_level)
    for level in (*FILES, Level.PRESET):
        rules = by_level.get(level, RuleSet())
        by_level[level] = msgspec.structs.replace(rules, waypoints=waypoints(rules, target_of))
    return msgspec.structs.replace(sources, by_level=MappingProxyType(by_level))


def _asks_of(settings: Settings) -> AskSettings:
    return AskSettings(settings.ask_timeout, settings.ask_default, settings.ask_unattended)
