"""The built-in rules, which every session starts from; all that users write comes before them.

They let ordinary work in the project go on without asking, keep credentials out of reach, and ask
for the rest.  :mod:`yolofs.rules.preset_table` has them line by line.
"""

from __future__ import annotations

import functools
import os
import sys

import msgspec

from yolofs.paths import is_in
from yolofs.rules.preset_table import CONFIG_KEY, SECTIONS
from yolofs.rules.rule_states import RuleState
from yolofs.rules.sources import PRESET_SOURCE
from yolofs.rules.spelling import PathRule, Rule, RuleSet, RuleSubject, parse_rule, spell_rule, subject

SOURCE = PRESET_SOURCE
"""How it starts where these rules are written, for messages; what follows is a section's title."""

EXEMPT = frozenset({b".git", b"dist-packages", b"node_modules", b"site-packages"})
"""Where names of files say nothing: branches may be called ``fix.key``, and published packages
bring certificates.
"""
_UP = "UP/"
_YOLOFS = "YOLOFS/"
_TOPS = (".", "~")


@functools.cache
def installation() -> tuple[bytes, ...]:
    """Return the directories that this yolofs, its Python and the libraries it needs run from,
    links resolved.

    In a checkout parts of the package are links to directories beside it.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with os.scandir(package) as entries:
        linked = [entry.path for entry in entries if entry.is_symlink()]
    libraries = os.path.dirname(os.path.dirname(os.path.abspath(msgspec.__file__)))
    paths = (sys.prefix, sys.base_prefix, package, *sorted(linked), libraries)
    return tuple(dict.fromkeys(os.path.realpath(os.fsencode(path)) for path in paths))


@functools.lru_cache(maxsize=4)
def preset_rules(
    project_dir: bytes,
    home: bytes,
    uid: int,
    installed: tuple[bytes, ...] = (),
    config_dir: bytes | None = None,
    *,
    hiding_only: bool = False,
) -> RuleSet:
    """Return the preset for a project and a user; of two lines about the same path the first
    counts.

    ``installed`` are the directories that yolofs runs from; one in the project, and one that
    contains the home directory or the project, has no rule.  ``config_dir`` is where the user's own
    settings are, if not where they are mostly.  With ``hiding_only`` there are only the lines that
    hide, and those for the project and the home directory, which stand between these and most
    paths.
    """
    rules: dict[RuleSubject, Rule] = {}
    for section in SECTIONS:
        source = SOURCE + section.title
        for line in section.rules:
            if hiding_only and line.state is not RuleState.HIDDEN and line.key not in _TOPS:
                continue
            for key in _keys(line.key, project_dir, home, uid, installed, config_dir):
                rule = parse_rule(key, line.state, source, project_dir, home)
                rules.setdefault(subject(rule), rule)
    return RuleSet(tuple(rules.values()), EXEMPT)


def _keys(
    key: str, project_dir: bytes, home: bytes, uid: int, installed: tuple[bytes, ...], config_dir: bytes | None
) -> list[str]:
    """Return what a line stands for: the directories that it is about, and the user's number,
    filled in.
    """
    if key.startswith(_YOLOFS):
        apart = (path for path in installed if not _is_around(path, project_dir, home))
        return [spell_rule(PathRule(path, RuleState.ASK, "")) + key[len(_YOLOFS) - 1 :] for path in apart]
    if key.startswith(CONFIG_KEY) and config_dir is not None:
        path = config_dir + os.fsencode(key.removeprefix(CONFIG_KEY))
        return [key, spell_rule(PathRule(path, RuleState.ASK, ""))]
    if key.startswith(_UP):
        directories = []
        while project_dir != home and project_dir.startswith(home.rstrip(b"/") + b"/"):
            project_dir = os.path.dirname(project_dir)
            directories.append(PathRule(os.path.join(project_dir, key[len(_UP) :].encode()), RuleState.ASK, ""))
        return [spell_rule(rule) for rule in directories]
    return [key.removesuffix("UID") + str(uid) if key.endswith("UID") else key]


def _is_around(path: bytes, project_dir: bytes, home: bytes) -> bool:
    """Whether a directory lies in the project, or the project or the home directory in it."""
    pairs = ((path, project_dir), (project_dir, path), (home, path))
    return any(is_in(inner, outer) for inner, outer in pairs)
