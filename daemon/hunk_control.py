"""The methods of the control socket that are about hunks: they are listed, committed, dropped and
edited.

Each is a command in a process of its own, which borrows the session itself where it changes
anything.  So a client gets what a user gets: the same checks, the same documents and errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from yolofs.daemon.command_process import CommandRunner
from yolofs.daemon.host import Host
from yolofs.daemon.rpc.hunk_messages import CommitHunksParams, DropHunksParams, EditHunkParams, HunksParams
from yolofs.daemon.rpc.protocol import unquote
from yolofs.daemon.rpc.server import Method, Result
from yolofs.errors import UsageError

_PROGRAM = "yolofs.cli.main"


class HunkMethods:
    """The methods as one client sees them."""

    def __init__(self, host: Callable[[], Host]) -> None:
        self._host = host
        self._commands = CommandRunner()

    def close(self) -> None:
        """Close the output that was sent last."""
        self._commands.close()

    @property
    def methods(self) -> Mapping[str, Method]:
        """The methods by their names, made anew for each caller: if they were kept, they and this
        object would refer to each other, and only a garbage collection would free them.
        """
        return {
            "hunks": Method(HunksParams, self._hunks),
            "commit_hunks": Method(CommitHunksParams, self._commit),
            "drop_hunks": Method(DropHunksParams, self._drop),
            "edit_hunk": Method(EditHunkParams, self._edit),
        }

    async def _hunks(self, params: HunksParams) -> Result:
        flags = _flags({"--scratch": params.scratch, "--hidden": params.hidden})
        return await self._run(["hunks", "--json", *flags, _value(params.range)], params.paths)

    async def _commit(self, params: CommitHunksParams) -> Result:
        flags = _flags({"--trusted": params.trusted, "--ours": params.ours})
        return await self._run(["commit", "--yes", "--json", "--hunk", "-", *flags], params.paths, params.hunks)

    async def _drop(self, params: DropHunksParams) -> Result:
        words = ["restore", "--json", "--hunk", "-", "--from", _value(params.source)]
        return await self._run(words, params.paths, params.hunks)

    async def _edit(self, params: EditHunkParams) -> Result:
        words = ["hunks", "--edit", _value(params.hunk), "--edited", "-"]
        return await self._run(words, params.paths, given=unquote(params.patch))

    async def _run(
        self,
        words: Sequence[str],
        paths: Sequence[str],
        hunks: Sequence[str] | None = None,
        *,
        given: bytes | None = None,
    ) -> Result:
        """Carry a command out, with hunks on its stdin, or what is ``given``."""
        if hunks is not None:
            given = "\n".join(hunks).encode()
        raw = [unquote(path) for path in paths]
        if any(not path.startswith(b"/") for path in raw):
            raise UsageError("a path is not absolute")
        told = [b"-C", self._host().project, *(word.encode() for word in words), b"--", *raw]
        return await self._commands.run(_PROGRAM, told, given)


def _value(word: str) -> str:
    """Return what a client says, which is to be no option.

    Raises:
        UsageError: it is one.
    """
    if word.startswith("-") and word != "-":
        raise UsageError(f"{word} is neither a generation nor a hunk")
    return word


def _flags(flags: Mapping[str, bool]) -> list[str]:
    return [name for name, is_given in flags.items() if is_given]
