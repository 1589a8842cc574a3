"""``yolofs diff --stat``: a line for each file, as git shows it, and one for all."""

from __future__ import annotations

from collections.abc import Sequence

from yolofs.changes.patch_stat import FileStat
from yolofs.cli.output import paint
from yolofs.cli.show.text_width import cut_start, width_of
from yolofs.paths import display
from yolofs.system.disk_usage import size_text

_MOST_PATH = 60
_LEAST_PATH = 20
_LEAST_BAR = 10
_BESIDE = 5
"""So many cells are beside a path, its count and its bar."""


def stat_lines(stats: Sequence[FileStat], width: int) -> list[str]:
    """Return the lines, as wide as a terminal with so many columns shows them."""
    if not stats:
        return []
    counts = ["Bin" if one.sizes is not None else str(one.added + one.removed) for one in stats]
    count_width = max(map(len, counts))
    least_bar = max(_LEAST_BAR, *(len(_bar(one, 0, 0)) for one in stats if one.sizes is not None), 0)
    most_path = max(_LEAST_PATH, min(_MOST_PATH, width - count_width - least_bar - _BESIDE))
    names = [cut_start(_name(one), most_path) for one in stats]
    name_width = max(map(width_of, names))
    most = max((one.added + one.removed for one in stats), default=0)
    room = max(_LEAST_BAR, width - name_width - count_width - _BESIDE)
    lines = [
        f" {name}{' ' * (name_width - width_of(name))} | {count:>{count_width}} {_bar(one, most, room)}".rstrip()
        for name, count, one in zip(names, counts, stats, strict=True)
    ]
    return [*lines, _total(stats)]


def _name(one: FileStat) -> str:
    return display(one.path) if one.old_path is None else f"{display(one.old_path)} => {display(one.path)}"


def _bar(one: FileStat, most: int, room: int) -> str:
    if one.sizes is not None:
        return " -> ".join(size_text(size).replace(".0 ", " ") for size in one.sizes)
    scale = min(1.0, room / most) if most else 1.0
    added, removed = (max(1, int(count * scale)) if count else 0 for count in (one.added, one.removed))
    return paint("+" * added, "green") + paint("-" * removed, "red")


def _total(stats: Sequence[FileStat]) -> str:
    added, removed = sum(one.added for one in stats), sum(one.removed for one in stats)
    counts = [f" {len(stats)} file{'s' if len(stats) > 1 else ''} changed"]
    if added:
        counts.append(f"{added} insertion{'s' if added > 1 else ''}(+)")
    if removed:
        counts.append(f"{removed} deletion{'s' if removed > 1 else ''}(-)")
    return ", ".join(counts)
