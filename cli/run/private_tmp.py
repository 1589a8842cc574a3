"""The private ``/tmp`` of a run: made, and told of where that may surprise."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence

from yolofs.cli.output import warn
from yolofs.config.load import user_file
from yolofs.daemon.rpc.protocol import unquote
from yolofs.daemon.rpc.run_messages import BeginRunResult
from yolofs.errors import SandboxError
from yolofs.paths import display, is_below
from yolofs.sandbox.tmp_mounts import PrivateTmp
from yolofs.session import run_tmp
from yolofs.text.enumeration import some_of

_FOR_TEMPORARY_FILES = ("TMPDIR", "TMP", "TEMP", "TMUX_TMPDIR")
"""Variables that name a directory which has to be there."""
_OF_SHELLS = frozenset({b"PWD", b"OLDPWD", b"_"}).union(map(str.encode, _FOR_TEMPORARY_FILES))
"""Variables whose values no program opens as they are, or that we see to."""
_PATHS = rb"(?<![\w./-])(?:/tmp|/var/tmp)/[^\s'\"`;|&<>(){}*?$:,]+"
_MOST_NAMED = 3


def make(session: bytes, begun: BeginRunResult, environment: Mapping[bytes, bytes], runtime_root: bytes) -> PrivateTmp:
    """Make what a run gets; ``environment`` is the command's.

    Raises:
        SandboxError: the session's disk is full, or fails.
    """
    private, shown = tuple(map(unquote, begun.private_tmp)), tuple(map(unquote, begun.shown_tmp))
    if not private:
        return PrivateTmp()
    named = (os.path.normpath(environment.get(name.encode(), b"")) for name in _FOR_TEMPORARY_FILES)
    tmp = PrivateTmp(dict.fromkeys(private, b""), shown)
    wanted = tuple(dict.fromkeys(path for path in named if path not in private and tmp.is_private(path)))
    ways = [*shown, *wanted, *([runtime_root] if tmp.is_private(runtime_root) else [])]
    try:
        sources = run_tmp.make(session, ways)
    except OSError as error:
        raise SandboxError(
            f"the private /tmp of a run cannot be made: {display(run_tmp.top_of(session))}: {error.strerror}",
            hint=f'make room there, or: run.tmp = "view" in {own_file()}',
        ) from error
    return PrivateTmp({path: sources[path] for path in private}, shown, wanted)


def say_what_is_ruled(begun: BeginRunResult) -> None:
    """Tell that a directory is not private because of a rule."""
    for one in begun.ruled_tmp:
        warn(
            f"{display(unquote(one.directory))} of this run is staged as the view has it, because of your rule for"
            f' {display(unquote(one.path))} ({one.source}); run.tmp = "view" in {own_file()} says so for good'
        )


def say_what_is_not_there(
    tmp: PrivateTmp, words: Sequence[bytes], environment: Mapping[bytes, bytes], directory: bytes, mountpoint: bytes
) -> None:
    """Tell in one line which files that a command names are in the view, and not in this run."""
    if not tmp.sources:
        return
    found = list(dict.fromkeys(_missing(tmp, words, environment, directory, mountpoint)))
    if not found:
        return
    warn(
        f"not in this run, whose /tmp is its own: {some_of(found, _MOST_NAMED)};"
        " put it into the project, or show the run what the host has:"
        f' run.tmp = "view" in {own_file()}'
    )


def own_file() -> str:
    """Return where the user's own settings are, for messages."""
    return display(user_file(os.path.abspath(os.path.expanduser(b"~"))))


def _missing(
    tmp: PrivateTmp, words: Sequence[bytes], environment: Mapping[bytes, bytes], directory: bytes, mountpoint: bytes
) -> Iterator[str]:
    """Yield the files for messages, with the variable that names one."""
    for path in _named(words, directory):
        if _mode_in_the_view_alone(tmp, path, mountpoint):
            yield display(path)
    program = _found_by_path(words[0], environment)
    if program is not None and _mode_in_the_view_alone(tmp, program, mountpoint):
        yield display(program)
    for name, value in environment.items():
        path = value.removeprefix(b"FILE:")  # as KRB5CCNAME has it
        if name not in _OF_SHELLS and stat.S_ISREG(_mode_in_the_view_alone(tmp, path, mountpoint)):
            yield f"{display(path)} (${display(name)})"


def _named(words: Iterable[bytes], directory: bytes) -> Iterator[bytes]:
    """Yield what may be a path in the words of a command, be it in a text for a shell."""
    for word in words:
        if b"/" in word and not word.startswith(b"-"):
            yield os.path.normpath(os.path.join(directory, word))
        for path in re.findall(_PATHS, word) if b"/tmp/" in word else ():
            yield os.path.normpath(path)


def _found_by_path(word: bytes, environment: Mapping[bytes, bytes]) -> bytes | None:
    search = environment.get(b"PATH", b"")
    if b"/" in word or b"tmp" not in search:
        return None
    paths = (os.path.join(directory, word) for directory in search.split(b":"))
    found = next((path for path in paths if os.access(path, os.X_OK) and not os.path.isdir(path)), None)
    return os.path.abspath(found) if found is not None else None


def _mode_in_the_view_alone(tmp: PrivateTmp, path: bytes, mountpoint: bytes) -> int:
    """Return the mode of a file that the view shows, and a run does not; 0 if that is not so."""
    if b"\0" in path or not path.startswith(b"/") or path in tmp.sources or not tmp.is_private(path):
        return 0
    if any(is_below(place, path) for place in tmp.shown):  # it is there, with less in it
        return 0
    if os.path.lexists(tmp.outside(path) or b""):
        return 0
    try:
        return os.lstat(mountpoint + path).st_mode
    except OSError:
        return 0
