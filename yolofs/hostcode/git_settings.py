"""What git's settings lead to, and which of them are harmless.

What is not surely harmless is not.  A setting is harmless if git's own commands write it (``init``,
``clone``, ``remote add``, ``branch -u``, ``checkout -b``, ``submodule add``, ``worktree add``,
``config user.name``), and if it runs no program, reads no other file of settings, and changes no
address that was there before.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from yolofs.hostcode.git_config import ConfigLine, hash_bytes_of
from yolofs.text.percent import unquote_to_bytes

_IsHarmless: TypeAlias = Callable[[str], bool]

_NAME = r"[A-Za-z0-9_][A-Za-z0-9_./+@-]*"
_WORD = r"[A-Za-z0-9-]*"
_HELPER = r"[A-Za-z0-9+.-]*::"
_SCHEMES = frozenset({"https", "http", "ssh", "git", "file", "git+ssh", "ssh+git"})
_BOOLEANS = frozenset({"true", "false", "yes", "no", "on", "off", "0", "1", ""})


def _is_printable(value: str) -> bool:
    return value.isprintable()


def _is_word(value: str) -> bool:
    return re.fullmatch(_WORD, value) is not None


def _is_boolean(value: str) -> bool:
    return value.lower() in _BOOLEANS


def _remote_name(value: str) -> bool:
    """Tell whether this is the name of a remote, or an address in its place, as ``gh pr checkout``
    writes of a fork.
    """
    return value == "." or _is_name(value) or ("://" in value and _url(value))


def _is_name(value: str) -> bool:
    """Tell whether this can only be the name of a remote, and not an address."""
    return re.fullmatch(_NAME, value) is not None and ".." not in value


def _url(value: str) -> bool:
    """Tell whether an address is fetched by git itself or by ssh, without a program that the
    address names.
    """
    if not value or value.startswith("-") or not value.isprintable() or re.match(_HELPER, value):
        return False
    scheme, has_scheme, rest = value.partition("://")
    if has_scheme and scheme not in _SCHEMES:
        return False
    host = (rest if has_scheme else value).partition("/")[0]
    return not any(part.startswith("-") for part in host.split("@"))


def _refspec(value: str) -> bool:
    """Tell whether what is fetched comes to lie with what was fetched, and not on a branch of one's
    own.
    """
    return value.isprintable() and value.rpartition(":")[2].startswith(("refs/remotes/", "refs/tags/"))


def _update(value: str) -> bool:
    return value in ("checkout", "merge", "rebase", "none")


def _one_of(*words: str) -> _IsHarmless:
    return frozenset(words).__contains__


def _key(value: str) -> bool:
    """Tell whether this names a key by its number or an address, and is no path, key text or
    option.
    """
    return re.fullmatch(_KEY_ID, value) is not None


def _alias(value: str) -> bool:
    """Tell whether this is one of git's commands that only look or add a commit, with harmless
    options.

    An alias can carry ``-c`` options and shell commands, write files (``log --output=``) and
    discard work.
    """
    command, *options = value.split(" ")
    return command in _ALIASED and _ALIAS_OPTIONS.issuperset(options)


_KEY_ID = r"(?:0x)?[0-9A-Fa-f]{8,64}!?|[A-Za-z0-9_.+]+@[A-Za-z0-9.-]+"
_ALIASED = frozenset(
    {"add", "blame", "branch", "checkout", "commit", "describe", "diff", "fetch", "log", "remote", "shortlog", "show"}
    | {"status", "switch", "tag"}
)
_ALIAS_OPTIONS = frozenset(
    {"--all", "--branch", "--cached", "--decorate", "--graph", "--name-only", "--name-status", "--oneline", "--short"}
    | {"--staged", "--stat", "-a", "-b", "-p", "-s", "-sb", "-v", "-vv"}
)
_PLAIN: Final[Mapping[tuple[str, str], _IsHarmless]] = {
    ("core", "repositoryformatversion"): _is_word,
    ("core", "filemode"): _is_boolean,
    ("core", "bare"): _is_boolean,
    ("core", "logallrefupdates"): _is_word,
    ("core", "ignorecase"): _is_boolean,
    ("core", "precomposeunicode"): _is_boolean,
    ("core", "symlinks"): _is_boolean,
    ("core", "sparsecheckout"): _is_boolean,
    ("core", "sparsecheckoutcone"): _is_boolean,
    ("core", "autocrlf"): _is_word,
    ("core", "eol"): _is_word,
    ("core", "safecrlf"): _is_word,
    ("core", "quotepath"): _is_boolean,
    ("core", "untrackedcache"): _is_word,
    ("core", "fsmonitor"): _is_boolean,  # git's own daemon; anything else is a program
    ("core", "longpaths"): _is_boolean,
    ("index", "sparse"): _is_boolean,
    ("extensions", "objectformat"): _is_word,
    ("extensions", "compatobjectformat"): _is_word,
    ("extensions", "refstorage"): _is_word,
    ("extensions", "worktreeconfig"): _is_boolean,
    ("extensions", "relativeworktrees"): _is_boolean,
    ("extensions", "partialclone"): _is_name,
    ("extensions", "preciousobjects"): _is_boolean,
    ("user", "name"): _is_printable,
    ("user", "email"): _is_printable,
    ("submodule", "active"): _is_printable,
    ("submodule", "recurse"): _is_boolean,
    ("remote", "pushdefault"): _remote_name,
    ("pull", "rebase"): _is_word,
    ("pull", "ff"): _is_word,
    ("push", "default"): _is_word,
    ("push", "autosetupremote"): _is_boolean,
    ("push", "followtags"): _is_boolean,
    ("fetch", "prune"): _is_boolean,
    ("fetch", "prunetags"): _is_boolean,
    ("init", "defaultbranch"): _is_printable,
    ("merge", "conflictstyle"): _is_word,
    ("merge", "ff"): _is_word,
    ("rerere", "enabled"): _is_boolean,
    ("color", "ui"): _is_word,
    ("gc", "auto"): _is_word,
    ("maintenance", "auto"): _is_boolean,
    ("maintenance", "strategy"): _is_word,
    ("lfs", "repositoryformatversion"): _is_word,
    ("commit", "gpgsign"): _is_boolean,  # by gpg.program, which is not in this list
    ("tag", "gpgsign"): _is_boolean,
    ("user", "signingkey"): _key,
    ("user", "useconfigonly"): _is_boolean,
    ("rebase", "autosquash"): _is_boolean,
    ("rebase", "autostash"): _is_boolean,
    ("rebase", "updaterefs"): _is_boolean,
    ("branch", "autosetupmerge"): _is_word,
    ("branch", "autosetuprebase"): _is_word,
    ("i18n", "commitencoding"): _is_word,
    ("i18n", "logoutputencoding"): _is_word,
    ("index", "version"): _is_word,
    ("feature", "manyfiles"): _is_boolean,
    ("feature", "experimental"): _is_boolean,
    ("core", "sharedrepository"): _one_of("group", "umask", "true", "false", "0", "1"),  # not for everybody
    ("receive", "denynonfastforwards"): _is_boolean,  # as `git init --shared` writes it
    ("receive", "denydeletes"): _is_boolean,
    ("receive", "denycurrentbranch"): _one_of("refuse", "warn", "ignore", "updateInstead", "true", "false"),
}
"""Settings without a subsection."""
_SHAPING: Final = """
    am.keepCR am.threeWay blame.blankBoundary blame.coloring blame.ignoreRevsFile blame.markIgnoredLines
    blame.markUnblamableLines blame.showEmail branch.sort checkout.defaultRemote checkout.guess checkout.workers
    column.ui commit.cleanup commit.status commit.verbose commitGraph.generationVersion
    commitGraph.maxNewFilters core.abbrev core.bigFileThreshold core.checkStat core.commentChar core.commitGraph
    core.compression core.deltaBaseCacheLimit core.fscache core.fsync core.fsyncMethod core.fsyncObjectFiles
    core.hideDotFiles core.looseCompression core.maxTreeDepth core.multiPackIndex core.packedGitLimit
    core.packedGitWindowSize core.packedRefsTimeout core.preloadIndex core.splitIndex core.trustctime
    core.useReplaceRefs core.warnAmbiguousRefs credential.validate diff.algorithm diff.autoRefreshIndex
    diff.colorMoved diff.colorMovedWS diff.context diff.dirstat diff.ignoreSubmodules diff.indentHeuristic
    diff.interHunkContext diff.mnemonicPrefix diff.noPrefix diff.relative diff.renameLimit diff.renames
    diff.statGraphWidth diff.submodule diff.suppressBlankEmpty diff.wordRegex diff.wsErrorHighlight fetch.all
    fetch.negotiationAlgorithm fetch.output fetch.parallel fetch.recurseSubmodules fetch.showForcedUpdates
    fetch.unpackLimit fetch.writeCommitGraph gc.aggressiveDepth gc.aggressiveWindow gc.autoDetach
    gc.autoPackLimit gc.bigPackThreshold gc.cruftPacks gc.packRefs gc.writeCommitGraph grep.column
    grep.extendedRegexp grep.fallbackToNoIndex grep.fullName grep.lineNumber grep.patternType grep.threads
    gui.GCWarning gui.geometry gui.wmstate http.lowSpeedLimit http.lowSpeedTime http.maxRequests
    http.minSessions http.postBuffer http.version index.recordEndOfIndexEntries index.recordOffsetTable
    index.skipHash index.threads log.abbrevCommit log.date log.decorate log.diffMerges log.excludeDecoration
    log.follow log.initialDecorationSet log.mailmap log.showRoot maintenance.autoDetach merge.autoStash
    merge.branchdesc merge.directoryRenames merge.log merge.renameLimit merge.renames merge.renormalize
    merge.stat merge.suppressDest merge.verbosity notes.mergeStrategy pack.compression pack.deltaCacheLimit
    pack.deltaCacheSize pack.depth pack.indexVersion pack.packSizeLimit pack.threads pack.useBitmaps
    pack.useSparse pack.window pack.windowMemory pack.writeBitmapHashCache pack.writeBitmaps
    pack.writeReverseIndex push.gpgSign push.useBitmaps push.useForceIfIncludes rebase.abbreviateCommands
    rebase.forkPoint rebase.missingCommitsCheck rebase.rebaseMerges rebase.rescheduleFailedExec rebase.stat
    receive.autogc receive.unpackLimit repack.cruftDepth repack.useDeltaBaseOffset repack.useDeltaIslands
    repack.writeBitmaps rerere.autoUpdate stash.showIncludeUntracked stash.showPatch stash.showStat
    status.aheadBehind status.branch status.displayCommentPrefix status.relativePaths status.renameLimit
    status.renames status.short status.showStash status.showUntrackedFiles status.submoduleSummary
    submodule.fetchJobs submodule.propagateBranches tag.forceSignAnnotated tag.sort transfer.unpackLimit
    versionsort.suffix worktree.guessRemote worktree.useRelativePaths
"""
"""Settings without a subsection that say how much, how fast or how it looks, and name no program
and no settings.
"""
_SHAPING_KEYS: Final = frozenset(tuple(name.split(".")) for name in _SHAPING.lower().split())
_SECTIONS: Final[Mapping[str, _IsHarmless]] = {
    "advice": _is_boolean,
    "alias": _alias,
    "color": _is_printable,
    "pager": _is_boolean,  # anything else is a program
}
"""Sections without subsections, whatever the key."""
_NAMED: Final[Mapping[tuple[str, str], _IsHarmless]] = {
    ("remote", "url"): _url,
    ("remote", "pushurl"): _url,
    ("remote", "fetch"): _refspec,
    ("remote", "tagopt"): lambda value: value in ("--tags", "--no-tags"),
    ("remote", "prune"): _is_boolean,
    ("remote", "prunetags"): _is_boolean,
    ("remote", "mirror"): _is_boolean,
    ("remote", "promisor"): _is_boolean,
    ("remote", "partialclonefilter"): _is_printable,
    ("remote", "skipfetchall"): _is_boolean,
    ("remote", "skipdefaultupdate"): _is_boolean,
    ("remote", "gh-resolved"): _is_printable,
    ("remote", "glab-resolved"): _is_printable,
    ("remote", "followremotehead"): _is_printable,
    ("branch", "remote"): _remote_name,
    ("branch", "pushremote"): _remote_name,
    ("branch", "merge"): lambda value: value.isprintable() and value.startswith("refs/"),
    ("branch", "rebase"): _is_word,
    ("branch", "description"): lambda _: True,
    ("branch", "gh-merge-base"): _is_printable,
    ("branch", "vscode-merge-base"): _is_printable,
    ("branch", "github-pr-owner-number"): _is_printable,
    ("credential", "usehttppath"): _is_boolean,
    ("lfs", "access"): _one_of("basic", "none"),  # as git-lfs notes what a server has asked for
    ("lfs", "locksverify"): _is_boolean,
    ("maintenance", "enabled"): _is_boolean,
    ("maintenance", "schedule"): _is_word,
    ("submodule", "url"): _url,
    ("submodule", "active"): _is_boolean,
    ("submodule", "branch"): _is_printable,
    ("submodule", "ignore"): _is_word,
    ("submodule", "shallow"): _is_boolean,
    ("submodule", "fetchrecursesubmodules"): _is_word,
    ("submodule", "update"): _update,
}
"""Settings with a subsection."""
_LEADING: Final = frozenset(
    {("remote", "url"), ("remote", "pushurl"), ("remote", "fetch"), ("branch", "remote"), ("submodule", "url")}
)
_PUSHING: Final = frozenset({("remote", "pushurl"), ("branch", "pushremote"), ("remote", "pushdefault")})


def _is_plain(entry: ConfigLine, *, is_new: bool = False) -> bool:
    if entry.subsection is None:
        key = entry.section, entry.key
        check = _is_printable if key in _SHAPING_KEYS else _PLAIN.get(key) or _SECTIONS.get(entry.section)
    elif entry.section == "remote" and not _is_name(entry.subsection):
        return False  # an address in the place of a name
    else:
        check = _NAMED.get((entry.section, entry.key))
    if is_new and (entry.section, entry.key) == ("remote", "fetch"):
        check = _is_printable  # as of a mirror: there are no branches yet that it could move
    if entry.value is None:  # git takes it for true where there is true or false
        return check in (_is_boolean, _is_word)
    return check is not None and check(entry.value)


_TEXTS: Final = frozenset({"attributesfile", "excludesfile", "file", "insteadof", "pushinsteadof", "template"})


def words_of_program(entry: ConfigLine) -> list[str]:
    """Return the words of a setting that may name files git runs or obeys; none if it names no
    program.
    """
    if entry.value is None or entry.key in _TEXTS or _is_plain(entry):
        return []
    command = re.sub(_FOUND_BY_A_SHELL, "./", re.sub(_HOME, "~/", entry.value.removeprefix("!")))
    try:
        words = shlex.split(command)
    except ValueError:  # the shell knows better
        words = command.split()
    first, *more = (word.rstrip(";") for word in [*words, ""])
    more += [inner for word in words for inner in _words_for_a_shell(word)]
    named = [word for word in more if "/" in word or "." in word]
    return [word for word in ([first] if "/" in first else []) + named if "://" not in word]


_ENDS_A_WORD = r"[\s;&|()<>`\"'=]+"
_HOME = r"\$(?:HOME|\{HOME\})/"
_FOUND_BY_A_SHELL = r"(?:\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`|\$\w+|\$\{\w+\})/"
"""What a command prints, or a variable holds, before a slash: nearly always the top of the work
tree.
"""


def _words_for_a_shell(word: str) -> list[str]:
    """Return the words that a shell finds in an argument of its own (``sh -c``, ``A=x``); nothing
    if it is one plain word.
    """
    inner = re.split(_ENDS_A_WORD, word)
    return [] if inner == [word] else inner


def is_harmless_change(
    old: Sequence[ConfigLine] | None, new: Sequence[ConfigLine] | None, *, is_own_worktree: _IsHarmless | None = None
) -> bool:
    """Tell whether settings may come in the place of others without anybody looking at them.

    ``old``: those that the repository has on the host; None if it has none, so that all of it is
    new.  ``new``: None if they cannot be read.  ``is_own_worktree`` tells of a value of
    ``core.worktree`` whether it leads where git puts it in a submodule; without it no value does.
    """
    if new is None:
        return False
    before = old or ()

    def is_plain(entry: ConfigLine) -> bool:
        if entry.name == ("core", None, "worktree"):
            return is_own_worktree is not None and is_own_worktree(entry.value or "")
        return _is_plain(entry, is_new=old is None)

    # Whatever is not plain has to be as it was, in its order too: of two values git goes by the
    # later one.
    if [entry for entry in before if not is_plain(entry)] != [entry for entry in new if not is_plain(entry)]:
        return False
    if old is not None and hash_bytes_of(old) != hash_bytes_of(new):
        return False  # all that git has there means something else then
    return old is None or not _leads_elsewhere(_by_name(before), _by_name(new))


_ADDRESSES: Final = _LEADING - {("remote", "fetch")} | _PUSHING


def local_repositories(entries: Sequence[ConfigLine]) -> Iterator[tuple[ConfigLine, bytes]]:
    """Yield the settings by which git fetches from, or pushes to, a repository on the same machine,
    each with the path of that.

    A push runs the hooks of that repository.
    """
    for entry in entries:
        value = entry.value
        if value is None or (entry.section, entry.key) not in _ADDRESSES:
            continue
        if value.lower().startswith("file://"):
            yield entry, b"/" + unquote_to_bytes(value[len("file://") :]).partition(b"/")[2]
        elif "/" in value and "://" not in value and ":" not in value.partition("/")[0]:
            yield entry, os.fsencode(value)


_Values: TypeAlias = dict[tuple[str, str | None, str], list[str | None]]


def _by_name(entries: Sequence[ConfigLine]) -> _Values:
    found: _Values = {}
    for entry in entries:
        found.setdefault(entry.name, []).append(entry.value)
    return found


def _leads_elsewhere(before: _Values, after: _Values) -> bool:
    """Tell whether what a user fetches or pushes by a known name would go elsewhere from now on."""
    for name, values in after.items():
        section, subsection, key = name
        if before.get(name, values) != values and (section, key) in _LEADING:
            return True
        is_known = subsection is None or any(other[:2] == (section, subsection) for other in before)
        if before.get(name) != values and (section, key) in _PUSHING and is_known:
            return True
    return False
