"""The settings that ``.yolofs.toml`` can hold: their names, types, ranges and defaults.

A field is a key, a Struct is a table.  The description of a field's type completes the sentence
"expected …" in error messages, and docs/reference/config.md is compared with all of this by a test.
"""

from typing import Annotated, Literal, NamedTuple, Self, TypeAlias

import msgspec
from msgspec import Meta

MAX_SECONDS = 10_000_000.0
"""The upper end of every timeout: some 115 days, well inside what the kernel's and poll's clocks
hold.
"""

Text: TypeAlias = Annotated[str, Meta(min_length=1, description="a string that is not empty")]
Flag: TypeAlias = Annotated[bool, Meta(description="true or false")]
Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=MAX_SECONDS, description="a number of seconds from 0 to 10000000")]
StateWord: TypeAlias = Annotated[
    Literal["allow", "read-only", "write-ask", "ask", "deny", "hidden"],
    Meta(description='"allow", "read-only", "write-ask", "ask", "deny" or "hidden"'),
]
"""The spellings of :class:`yolofs.rules.RuleState`; a test keeps the two equal."""


Names: TypeAlias = Annotated[tuple[Text, ...], Meta(description="an array of strings that are not empty")]

PatternTexts: TypeAlias = Annotated[
    tuple[Text, ...], Meta(max_length=200, description="an array of up to 200 strings that are not empty")
]


class RuleLine(NamedTuple):
    """One line of ``[rules]`` as it is written; :func:`yolofs.rules.parse_rules` makes a rule of
    it.
    """

    key: str
    """A path or a pattern, not looked at yet."""

    state: StateWord

    line: int | None
    """Its line in the file, from 1; None if it could not be told."""


class MountSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[mount]``: what the kernel may cache, and how the device is served."""

    allow_other: Annotated[bool | Literal["auto"], Meta(description='true, false or "auto"')] = "auto"
    """Whether other users may enter the mount; "auto" is on for root and off for everybody else."""

    base_timeout: Seconds = 1.0
    """How long the kernel may cache names and attributes of base files that nobody watches."""

    staged_timeout: Seconds = 86400.0
    """How long the kernel may cache names and attributes that only yolofs changes."""

    watch: Flag = True
    """Whether the project's base files are watched, so that the kernel may cache them for
    longer.
    """

    watched_timeout: Seconds = 60.0
    """How long the kernel may cache names and attributes of base files that are watched."""

    xattrs: Annotated[bool | Literal["auto"], Meta(description='true, false or "auto"')] = "auto"
    """Whether extended attributes are served; "auto" is on where the kernel leaves to us what a
    write takes away.
    """

    spin_us: Annotated[int, Meta(ge=0, le=1000, description="a whole number of microseconds from 0 to 1000")] = 60
    """How long the device is polled after each request before the loop sleeps, in microseconds."""

    switch_interval_ms: Annotated[
        float, Meta(ge=0.01, le=1000, description="a number of milliseconds from 0.01 to 1000")
    ] = 0.5
    """How long another thread of the daemon may hold the interpreter lock, in milliseconds."""

    transport: Annotated[Literal["auto", "direct", "pyfuse3"], Meta(description='"auto", "direct" or "pyfuse3"')] = (
        "auto"
    )
    """What stands between the kernel and yolofs: its own "direct" transport, or "pyfuse3"."""

    max_fds: Annotated[int, Meta(ge=16, le=1_000_000, description="a whole number from 16 to 1000000")] = 512
    """How many file descriptors are kept open for files that no process has open."""


class RunSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[run]``: the sandbox of ``yolofs run``."""

    network: Annotated[Literal["host", "none"], Meta(description='"host" or "none"')] = "host"
    """Whether commands have the host's network."""

    native_binds: Flag = True
    """Whether commands get directories in which nothing can differ from base straight from base."""

    tmp: Annotated[Literal["auto", "private", "view"], Meta(description='"auto", "private" or "view"')] = "auto"
    """The ``/tmp`` and ``/var/tmp`` of a command: "private" directories of the session, not staged;
    or those of the "view"; "auto" follows the user's own file.
    """

    hide_env: Names = (
        "SSH_AUTH_SOCK",
        "SSH_AGENT_PID",
        "GPG_AGENT_INFO",
        "*_TOKEN",
        "*_SECRET",
        "*_SECRET_KEY",
        "*_ACCESS_KEY",
        "*_API_KEY",
        "*_PRIVATE_KEY",
        "*_PASSWORD",
        "*_PASSPHRASE",
        "*_CREDENTIALS",
        "*_PAT",
        "TOKEN",
        "SECRET",
        "SECRET_KEY",
        "API_KEY",
        "PRIVATE_KEY",
        "PASSWORD",
        "PASSPHRASE",
        "CREDENTIALS",
        "PGPASSWORD",
        "MYSQL_PWD",
    )
    """Names and patterns of variables that commands do not get."""

    keep_env: Names = ()
    """Names and patterns of variables that commands get in spite of that."""


class DiffSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[diff]``: how differences are shown."""

    context: Annotated[int, Meta(ge=0, le=1_000_000, description="a whole number of lines from 0 to 1000000")] = 3
    """Lines of context around each difference."""

    max_text_bytes: Annotated[
        int, Meta(ge=0, le=2**40, description="a whole number of bytes from 0 to 1099511627776")
    ] = 16 << 20
    """Files above this many bytes are shown as binary; the default is the limit of hunks, which a
    test keeps equal.
    """


class KeepCommits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[keep_commits]``: how long commits can be undone: as long as all of these hold, and the
    newest always.
    """

    count: Annotated[int, Meta(ge=1, le=1_000_000, description="a whole number of commits from 1 to 1000000")] = 20
    """How many."""

    days: Annotated[float, Meta(ge=0, le=100_000, description="a number of days from 0 to 100000")] = 30.0
    """Since when."""

    gib: Annotated[float, Meta(ge=0, le=1_000_000, description="a number of GiB from 0 to 1000000")] = 5.0
    """How much they keep of what base had before, in GiB on the disk."""


class UserRunSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[run]`` of the user's own file."""

    tmp: Annotated[Literal["private", "view"], Meta(description='"private" or "view"')] = "private"
    """As in a project's file, which says more only once that was agreed to."""


class UserSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that the user's own ``config.toml`` says, for all projects."""

    preset: Annotated[Literal["standard", "none"], Meta(description='"standard" or "none"')] = "standard"
    """Whether the built-in rules are in force."""

    state: Text = ""
    """The directory for sessions and all else that yolofs keeps: absolute or below ``~``; "": the
    usual one.
    """

    safe_directories: Names = ()
    """Directories of other users in which sessions are looked for and made all the same: absolute,
    below ``~``, or ``*`` for all."""

    host_code: PatternTexts = ()
    """Patterns of more files that a commit takes only by name: absolute, below ``~``, or ``**/``
    anywhere; relative to each project."""

    notify: Annotated[str, Meta(description="a string")] = ""
    """A shell command that is run when something is asked, with the ask as JSON on its stdin."""

    run: UserRunSettings = UserRunSettings()

    keep_commits: KeepCommits = KeepCommits()
    """As in a project's file; one says more for itself, and less once that was agreed to."""

    rules: tuple[RuleLine, ...] = ()
    """``[rules]``, in the order of the file; no key is relative."""


class LearnedRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that ``rules.toml`` says."""

    rules: tuple[RuleLine, ...] = ()
    """``[rules]``, in the order of the file."""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that ``.yolofs.toml`` says, with the defaults for what it leaves out."""

    root: Text = "/"
    """The base directory: absolute, below ``~``, or relative to the project; looked for when the
    session opens.
    """

    ask_timeout: Seconds = 60.0
    """How long an ask waits for an answer."""

    ask_unattended: Seconds = 5.0
    """How long an ask of a run waits if nobody watches; at most ask_timeout."""

    ask_default: Annotated[Literal["deny", "allow"], Meta(description='"deny" or "allow"')] = "deny"
    """The answer to an ask that nobody answered."""

    preset: Annotated[Literal["auto", "standard", "none"], Meta(description='"auto", "standard" or "none"')] = "auto"
    """Whether the built-in rules are in force; "auto": as the user's own file says."""

    scratch: Names = ("/tmp", "/var/tmp", "~/.cache", "~/.npm")
    """Directories whose changes are shown and committed only when asked for; absolute, below ``~``,
    or relative to the project."""

    host_code: PatternTexts = ()
    """Patterns of more files that the host runs or obeys, so that a commit takes them only by name:
    absolute, below ``~``, relative to the project, or ``**/`` for anywhere.
    """

    mount: MountSettings = MountSettings()
    run: RunSettings = RunSettings()
    diff: DiffSettings = DiffSettings()
    keep_commits: KeepCommits = KeepCommits()

    rules: tuple[RuleLine, ...] = ()
    """``[rules]``, in the order of the file."""

    @classmethod
    def defaults(cls) -> Self:
        """Return the settings of a project without a ``.yolofs.toml``."""
        return cls()
