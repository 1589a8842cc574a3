"""Runs as they go over the control socket (``docs/reference/rpc.md``).

Command lines, paths and names travel percent-encoded.
"""

import msgspec


class LookParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of ``look``: a command line of ``yolofs``, and the directory that it was typed
    in.
    """

    words: tuple[str, ...]
    directory: str


class LookResult(msgspec.Struct, frozen=True):
    """The result of ``look``; with it comes a descriptor of a file that holds stdout and then
    stderr.
    """

    code: int
    out_bytes: int
    err_bytes: int


class NewsResult(msgspec.Struct, frozen=True):
    """The result of ``news``."""

    has_news: bool
    """Whether the user has told something that no agent was told yet."""


class BeginRunParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of ``begin_run``."""

    command: tuple[str, ...]
    directory: str
    snapshot: bool = True
    """Whether what is not snapshotted yet is snapshotted before."""
    native: bool = False
    """Whether to tell what may be bound straight from base."""
    tmp: str = "view"
    """The run's ``/tmp``: "private", "view", or "auto", to follow the user's own file."""
    home: str = ""
    """The home directory of the command, which it sees in any case; "" for none."""


class RuledTmp(msgspec.Struct, frozen=True):
    """A directory that is not private, as the user has a rule for something in there."""

    directory: str
    path: str
    """What the rule is about."""
    source: str
    """Where it is written."""


class BeginRunResult(msgspec.Struct, frozen=True):
    """The result of ``begin_run``."""

    run: int
    generation: int
    """The one that the run starts from."""
    marker_ns: int
    """The time of its marker; see :class:`yolofs.audit.runs.Point`."""
    agent_socket: str
    native: tuple[str, ...] = ()
    """Directories that the sandbox may have straight from base, as :attr:`BeginRunParams.native`
    asked.
    """
    waiting_rules: int = 0
    """How many rules of ``.yolofs.toml`` are not in force until the user agrees to them."""
    private_tmp: tuple[str, ...] = ()
    """Which of ``/tmp`` and ``/var/tmp`` are the run's own, as :attr:`BeginRunParams.tmp` asked."""
    shown_tmp: tuple[str, ...] = ()
    """What the view shows in these all the same."""
    ruled_tmp: tuple[RuledTmp, ...] = ()


class EnterRunParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of ``enter_run``: the inode number of the pid namespace that holds the run's
    processes.
    """

    run: int
    namespace: int


class EndRunParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of ``end_run``."""

    run: int
    code: int | None = None
    snapshot: bool = True
    name: str = ""
    """Of the snapshot."""


class EndRunResult(msgspec.Struct, frozen=True):
    """The result of ``end_run``: the generation that holds what has changed; None if nothing has,
    or none is wanted.
    """

    generation: int | None
    has_notes: bool = False
    """Whether anything was asked or refused while the run went on."""
    going_on: tuple[int, ...] = ()
    """The runs that still go on."""
