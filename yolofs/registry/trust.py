"""The settings of a project that the user has agreed to, and the settings then in force.

An agreement is remembered by the meaning of a line (:data:`yolofs.config.lines.Meaning`).  If the
file changes later, the lines that were agreed to stay in force, and the others wait.  It lies in
``STATE/trust/NAME``, where no tree, and no program in a view, can put one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from yolofs.config.lines import Meaning
from yolofs.config.load import is_default, load_with_source, user_preset
from yolofs.config.settings import Settings
from yolofs.errors import ConfigError, TrustError, YolofsError
from yolofs.paths import is_in
from yolofs.text.percent import quote_from_bytes

if TYPE_CHECKING:  # takes long, and most trees say nothing that could wait
    from yolofs.config.trust import Surroundings, WaitingLine


class Agreed(msgspec.Struct, frozen=True):
    """What the user has agreed to for one project."""

    meanings: frozenset[Meaning] = frozenset()
    closed: frozenset[Meaning] = frozenset()
    """Rules of the file that made exceptions of what was agreed to, by then: without them more
    would be opened.
    """
    content: str = ""
    """The hash of the file that was agreed to last; for people."""
    version: int = 1


class Agreements(msgspec.Struct, frozen=True):
    """What was found of it."""

    agreed: Agreed
    problem: str = ""
    """Why it cannot be told, in which case it counts as nothing."""


class Loaded(msgspec.Struct, frozen=True):
    """What ``.yolofs.toml`` says, and what of it holds."""

    written: Settings
    settings: Settings
    """What is in force; without rules, of which :class:`yolofs.rules.rule_files.RuleFiles`
    tells.
    """
    waiting: tuple[WaitingLine, ...]
    """The lines that are not in force until the user agrees to them; without rules."""
    text: bytes
    """The file as it was read."""


def load_in_force(project: bytes, directory: bytes, *, agreed: Agreed | None = None) -> Loaded:
    """Read the settings of a project whose session is in ``directory``: of its ``.yolofs.toml``
    only what is in force.  Everything that obeys settings gets them here.  ``agreed`` stands for
    what is remembered.

    Raises:
        ConfigError: the file is not in order.
    """
    written, text = load_with_source(project)
    loaded = in_force(project, written, text, agreed if agreed is not None else Agreed())
    if not loaded.waiting or agreed is not None:
        return loaded
    return in_force(project, written, text, read_agreements(directory).agreed)


def in_force(project: bytes, written: Settings, text: bytes, agreed: Agreed) -> Loaded:
    """Return the settings in force, of those read, by what the user has agreed to."""
    if is_default(written):
        return Loaded(written, Settings.defaults(), (), text)
    from yolofs.config.trust import settle_settings

    settings, waiting = settle_settings(written, agreed.meanings, surroundings(project))
    return Loaded(written, settings, waiting, text)


def surroundings(project: bytes) -> Surroundings:
    """Return what the settings of a project depend on."""
    from yolofs.config.trust import Surroundings

    def place_of(text: str) -> str:
        return place_text(os.path.realpath(os.path.join(project, os.path.expanduser(os.fsencode(text)))), project)

    def preset() -> str:
        try:
            return user_preset()
        except ConfigError:  # said where his rules are read
            return ""

    return Surroundings(os.geteuid() == 0, preset, place_of)


def place_text(path: bytes, project: bytes) -> str:
    """Return an absolute path so that it can be remembered: relative to the project, which may
    move, if it is in it.
    """
    if project != b"/" and is_in(path, project):
        path = os.path.relpath(path, project)
    return quote_from_bytes(path)


# ---- what is remembered


def trust_name(directory: bytes) -> bytes:
    """Return the name under which agreements are kept for the project whose session is in
    ``directory``: its id.

    So an agreement does not count for a copy of the project, and still counts after the project has
    moved.
    """
    return os.path.basename(os.path.realpath(directory))


def read_agreements(directory: bytes) -> Agreements:
    """Return what the user has agreed to for a project; what cannot be read or trusted counts as
    nothing.
    """
    from yolofs.registry.private import read_private
    from yolofs.registry.state_directory import TRUST, open_state

    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC  # reading makes nothing
    try:
        with _closing(open_state) as state, _closing(lambda: os.open(TRUST, flags, dir_fd=state)) as part:
            content = read_private(part, trust_name(directory))
        return Agreements(msgspec.json.decode(content, type=Agreed))
    except FileNotFoundError:
        return Agreements(Agreed())
    except YolofsError as error:
        return Agreements(Agreed(), error.message)
    except OSError as error:
        return Agreements(Agreed(), f"the state directory cannot be read: {error.strerror}")
    except msgspec.DecodeError as error:
        return Agreements(Agreed(), f"the file in the state directory is damaged: {error}")


def remember(directory: bytes, agreed: Agreed, before: Agreed) -> None:
    """Remember what the user has agreed to for a project, in place of ``before``: what was agreed
    to when the rest was shown.

    Raises:
        TrustError: others could change the state directory; or something else has been agreed to,
            or forgotten, since.
        OSError: it cannot be written.
    """
    from yolofs.config.learned import learned_rules_locked
    from yolofs.registry.private import write_private
    from yolofs.registry.state_directory import TRUST, open_part, open_state

    with (
        learned_rules_locked(directory),
        _closing(lambda: open_state(make=True)) as state,
        _closing(lambda: open_part(state, TRUST)) as part,
    ):
        now = read_agreements(directory).agreed
        if now == agreed:
            return
        if now != before:
            raise TrustError(
                "another yolofs trust has changed what is agreed to of .yolofs.toml since these lines were shown",
                hint="nothing was changed by this one; look at what waits now: yolofs trust",
            )
        write_private(part, trust_name(directory), msgspec.json.encode(agreed, order="deterministic"))


def forget_agreements(directory: bytes) -> bool:
    """Forget what the user has agreed to for a project; return whether there was anything.

    Raises:
        TrustError: others could change the state directory.
        OSError: it cannot be written.
    """
    from yolofs.config.learned import learned_rules_locked
    from yolofs.registry.state_directory import TRUST, open_part, open_state

    try:
        with (
            learned_rules_locked(directory),
            _closing(open_state) as state,
            _closing(lambda: open_part(state, TRUST)) as part,
        ):
            os.unlink(trust_name(directory), dir_fd=part)
            os.fsync(part)
    except FileNotFoundError:
        return False
    return True


def content_hash(text: bytes) -> str:
    """Return what stands for the content of a file."""
    import hashlib

    return hashlib.sha256(text).hexdigest()


def digest_of_lines(project: bytes, waiting: Iterable[WaitingLine]) -> str:
    """Return a digest of some lines and of what they open, for a command that agrees to just these.
    It has 128 bits, so whoever writes the file cannot find two contents with the same digest.
    """
    import hashlib

    lines = sorted((one.shown, one.opens, one.meanings) for one in waiting)
    return hashlib.sha256(msgspec.json.encode((quote_from_bytes(project), lines))).hexdigest()[:32]


@contextlib.contextmanager
def _closing(opened: Callable[[], int]) -> Iterator[int]:
    fd = opened()
    try:
        yield fd
    finally:
        os.close(fd)
