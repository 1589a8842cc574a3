"""Finds read-only places of a run that a command may have tried to write: the kernel refuses that,
and nobody else learns of it.

So the command line is read, for what it names to be written.  This is a hint and no record: a
program's own writes are not in its command line.
"""

from __future__ import annotations

import itertools
import os
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from yolofs.cli.output import say
from yolofs.cli.run.shells import is_shell
from yolofs.paths import display, in_shell, is_below

_PUNCTUATION = "();<>|&\n"
_PASS_ON = frozenset({"&&", "(", ")", "&&(", "((", "))"})
"""Separators that may follow a command; if it fails, its exit code becomes the script's."""
_ALL_OPERANDS = frozenset(
    {"chgrp", "chmod", "chown", "mkdir", "rm", "rmdir", "shred", "tee", "touch", "truncate", "unlink"}
)
"""Programs that write to each path that they are given."""
_LAST_OPERAND = frozenset({"cp", "install", "ln", "rsync"})
"""Programs that write to the last path, or into the directory that an option names."""
_FIRST_WORDS = frozenset({"env", "exec", "nice", "nohup", "sudo", "time", "command"})
"""Programs that run another one."""
_NODE_TOOLS = frozenset({"npm", "pnpm", "yarn"})
_BUILDERS = frozenset({"make", "gmake", "ninja", "meson", "cmake"})
_OTHER_PLACES = ("destdir", "prefix")
_MOST_SHOWN = 3


class ReadOnlyPlace(NamedTuple):
    """What a command may have tried to write."""

    path: bytes
    advice: str | None = None
    """What to do instead of opening the place by a rule."""
    is_hidden: bool = False
    """Whether the exit code of the command line says nothing about this: that of another command
    took its place, as in a pipe.
    """


def which_are_read_only(
    native: Sequence[bytes],
    words: Sequence[bytes],
    environment: Mapping[bytes, bytes],
    directory: bytes,
    code: int,
) -> list[ReadOnlyPlace]:
    """Return what a command line names to be written in the directories ``native``, which come
    straight from the disk.

    ``code`` is the command's exit code.  If it succeeded, only commands in it count that may have
    failed all the same.
    """
    if not native:
        return []
    places: Iterable[ReadOnlyPlace] = places_written(words, environment, directory)
    if code == 0:
        places = (place for place in places if place.is_hidden)
    return list({place.path: place for place in places if any(is_below(place.path, top) for top in native)}.values())


def say_places(found: Sequence[ReadOnlyPlace]) -> None:
    """Tell which paths a command cannot have written; nothing if there are none."""
    if not found:
        return
    say("yolofs: read-only in a run, so the command cannot have written there (a refusal there is in no list):")
    for place in found[:_MOST_SHOWN]:
        say(f"  {display(place.path)}: yolofs rule explain {in_shell(place.path)}")
    if len(found) > _MOST_SHOWN:
        say(f"  … and {len(found) - _MOST_SHOWN} more")
    advice = list(dict.fromkeys(place.advice for place in found if place.advice is not None))
    opened = [place.path for place in found[:_MOST_SHOWN] if place.advice is None]
    for text in advice:
        say(f"instead: {text}")
    if opened:
        say(f"to allow it next time: yolofs rule allow {' '.join(map(in_shell, opened))}")


def places_written(
    words: Sequence[bytes], environment: Mapping[bytes, bytes], directory: bytes
) -> Iterator[ReadOnlyPlace]:
    """Yield what a command line names to be written, be it in a script for a shell."""
    for simple, is_hidden in _simple_commands(list(map(os.fsdecode, words)), is_hidden=False):
        for place in _of_simple(simple, environment):
            path = os.path.normpath(os.path.join(directory, place.path))
            yield place._replace(path=path, is_hidden=is_hidden)


def _simple_commands(words: list[str], *, is_hidden: bool) -> Iterator[tuple[list[str], bool]]:
    """Yield the commands of a command line, each a list of words, and whether its exit code is
    hidden; a redirection stays in it.
    """
    script = _script(words)
    if script is None:
        yield words, is_hidden
        return
    commands, separators = _parted(script)
    for number, command in enumerate(commands):
        if command:
            hides = any(separator not in _PASS_ON for separator in separators[number:])
            yield from _simple_commands(command, is_hidden=is_hidden or hides)


def _parted(script: str) -> tuple[list[list[str]], list[str]]:
    """Return the commands of a script, and what stands after each but the last."""
    lexer = shlex.shlex(script.rstrip("; \t\n"), posix=True, punctuation_chars=_PUNCTUATION)
    lexer.whitespace = " \t\r"
    lexer.commenters = ""
    lexer.whitespace_split = True
    commands: list[list[str]] = [[]]
    separators: list[str] = []
    try:
        for word in lexer:
            if set(word) <= set("();|&\n"):
                commands.append([])
                separators.append(word)
            else:
                commands[-1].append(word)
    except ValueError:  # a quote is missing: a shell does not run the last of them either
        commands.pop()
        separators = separators[: len(commands) - 1]
    return commands, separators


def _script(words: Sequence[str]) -> str | None:
    """Return the script of ``sh -c``, None if this is no such command."""
    if not is_shell(os.fsencode(words[0])):
        return None
    for option, text in itertools.pairwise(words[1:]):
        if not option.startswith("-"):
            return None
        if option.endswith("c") and not option.startswith("--"):
            return text
    return None


def _of_simple(words: Sequence[str], environment: Mapping[bytes, bytes]) -> Iterator[ReadOnlyPlace]:
    rest: list[str] = []
    own_environment = dict(environment)
    previous = ""
    for word in words:
        if set(previous) <= set("<>&") and ">" in previous:
            if not (previous.endswith("&") and (word.isdigit() or word == "-")):  # another descriptor, or none
                yield ReadOnlyPlace(os.fsencode(word))
        elif not rest and "=" in word:
            name, _, value = word.partition("=")
            own_environment[os.fsencode(name)] = os.fsencode(value)
        elif not (set(word) <= set("<>&")):
            rest.append(word)
        previous = word
    while rest and os.path.basename(rest[0]) in _FIRST_WORDS:
        del rest[0]
    if rest:
        yield from _of_program(os.path.basename(rest[0]), rest[1:], own_environment)


def _of_program(program: str, words: Sequence[str], environment: Mapping[bytes, bytes]) -> Iterator[ReadOnlyPlace]:
    operands = [word for word in words if not word.startswith("-")]
    if program in _ALL_OPERANDS:
        yield from (ReadOnlyPlace(os.fsencode(word)) for word in operands if "/" in word)
    elif program == "mv":
        yield from (ReadOnlyPlace(os.fsencode(word)) for word in operands)
    elif program in _LAST_OPERAND and len(operands) > 1:
        yield from (ReadOnlyPlace(os.fsencode(word)) for word in operands[-1:])
    elif program in _NODE_TOOLS and _is_global(words):
        prefix = "npm_config_prefix=$PWD/.npm yolofs run -- npm install -g …, a prefix in the project"
        yield ReadOnlyPlace(_node_modules(program, words, environment), prefix)
    elif program == "corepack" and operands[:1] in (["enable"], ["disable"]):
        directory = "mkdir -p .bin; yolofs run -- corepack enable --install-directory $PWD/.bin"
        yield ReadOnlyPlace(_corepack_directory(words, environment), directory)
    elif program in _BUILDERS and _installs(words):
        yield ReadOnlyPlace(b"/usr/local", "a prefix or DESTDIR in the project")


def _corepack_directory(words: Sequence[str], environment: Mapping[bytes, bytes]) -> bytes:
    """Return the directory that corepack puts the commands of package managers into."""
    for option, value in itertools.pairwise([*words, ""]):
        if option.startswith("--install-directory=") or (option == "--install-directory" and value):
            return os.fsencode(option.partition("=")[2] or value)
    search = os.fsdecode(environment.get(b"PATH", os.fsencode(os.defpath)))
    found = shutil.which("corepack", path=search) or "/usr/bin/corepack"
    return os.fsencode(os.path.realpath(os.path.dirname(found)))


def _installs(words: Sequence[str]) -> bool:
    """Tell whether a builder installs where it does if nobody names another place."""
    if any(word.lower().lstrip("-").startswith(_OTHER_PLACES) for word in words):
        return False
    return "install" in words or "--install" in words


def _is_global(words: Sequence[str]) -> bool:
    """Tell whether a package manager of Node's is to install for everybody."""
    location = ("--location", "global") in itertools.pairwise(words)
    return location or not {"-g", "--global", "--location=global", "link"}.isdisjoint(words)


def _node_modules(program: str, words: Sequence[str], environment: Mapping[bytes, bytes]) -> bytes:
    """Return the directory that a package manager of Node's installs into for everybody."""
    for option, value in itertools.pairwise([*words, ""]):
        if option.startswith("--prefix=") or (option == "--prefix" and value):
            return os.path.join(os.fsencode(option.partition("=")[2] or value), b"lib/node_modules")
    for name in (b"npm_config_prefix", b"NPM_CONFIG_PREFIX"):
        if environment.get(name):
            return os.path.join(environment[name], b"lib/node_modules")
    search = os.fsdecode(environment.get(b"PATH", os.fsencode(os.defpath)))
    found = shutil.which("node", path=search) or shutil.which(program, path=search) or "/usr/bin/node"
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(found)))
    return os.path.join(os.fsencode(prefix), b"lib/node_modules")
