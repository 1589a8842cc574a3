"""What ``yolofs gc`` removes: as lines for people, and as JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from yolofs.cli.commit.tidying import RemovedSurplus
from yolofs.cli.output import emit, local_time, say
from yolofs.system.disk_usage import size_text


def emit_removal(removal: RemovedSurplus, *, generations: bool, is_dry_run: bool) -> None:
    """Write a line for each commit, then say on stderr how much there was of everything;
    ``generations`` tells whether it was asked for them, too.
    """
    for one in removal.commits:
        emit(f"{one.number:>4}  {local_time(one.began_ns)}")
    which = "1 commit" if len(removal.commits) == 1 else f"{len(removal.commits)} commits"
    if generations:
        which += " and 1 generation" if removal.generations == 1 else f" and {removal.generations} generations"
    killed = removal.killed_commands
    if killed:
        which += f" and what {killed} killed command{'s' if killed > 1 else ''} had left"
    later = removal.once_agreed
    if later:
        which_later = ", ".join(str(one.number) for one in later)
        say(f"once you have agreed to what waits, also: commit{'s' if later[1:] else ''} {which_later}")
    what, freed = ("would be removed", "would be freed") if is_dry_run else ("removed", "freed")
    later_freed = ""
    if removal.freed_later_bytes:
        size = size_text(removal.freed_later_bytes)
        later_freed = f"; {size} more once programs have closed what they have open of it"
    say(f"{which} {what}, {size_text(removal.freed_bytes)} {freed}{later_freed}")


def removal_document(removal: RemovedSurplus, waiting: Sequence[Any], *, is_dry_run: bool) -> dict[str, Any]:
    """Return the JSON document of a removal; ``waiting``: the fields of the settings that wait."""
    return {
        "commits": [one.number for one in removal.commits],
        "generations": removal.generations,
        "freed_bytes": removal.freed_bytes,
        "freed_when_closed_bytes": removal.freed_later_bytes,
        "dry_run": is_dry_run,
        "killed_commands": removal.killed_commands,
        "waiting": waiting,
        "once_agreed": [one.number for one in removal.once_agreed],
    }
