"""The results as text: for a terminal, and as a table for the docs."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measured import FLOOR, PEER, REFERENCE, Results, Row

SHARE = "and, last, processor time of the server for each second of the work's own in the plain directory"


def duration(seconds: float) -> str:
    """Return a time with three digits and its unit."""
    units = ((1e9, "ns"), (1e6, "µs"), (1e3, "ms"), (1.0, "s"))
    factor, unit = next((each for each in units if seconds * each[0] < 999.5), units[-1])
    value = seconds * factor
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"


def multiple(ratio: float) -> str:
    """Return a ratio with two digits."""
    return f"{ratio:.{2 if ratio < 9.95 else 1 if ratio < 99.5 else 0}f}"


def as_text(results: Results) -> str:
    """Return the table of each mode: median, range, ratio to the plain directory and to
    fuse-overlayfs, serial share.
    """
    return "\n".join(_text(results))


def _text(results: Results) -> Iterator[str]:
    for mode in _modes(results):
        yield f"\n{mode}: median of {results.rounds} [fastest to slowest], times the plain directory, times {PEER}"
        yield SHARE
        for row in results.rows:
            if row.mode != mode:
                continue
            yield f"{row.name}: {row.title}"
            for column in results.columns:
                yield f"    {column:15} {_cell(row, column)}"
            if row.requests:
                yield f"    {'requests':15} {_requests(row)}"
    yield ""
    yield ", ".join(f"{name} {value}" for name, value in results.machine.items())
    for column, why in results.missing.items():
        yield f"missing: {column}: {why}"
    for failure in results.failures:
        yield f"FAILED: {failure}"


def _modes(results: Results) -> list[str]:
    return list(dict.fromkeys(row.mode for row in results.rows))


def _cell(row: Row, column: str) -> str:
    median = row.median(column)
    if median is None:
        return f"- {row.notes.get(column, 'not measured')}"
    found = row.seconds[column]
    spread = f"[{duration(min(found))} to {duration(max(found))}]"
    ratios = [row.ratio(column, reference) for reference in (REFERENCE, PEER)]
    beside = "".join(f"{'x' + multiple(ratio) if ratio is not None else '-':>9}" for ratio in ratios)
    share = row.serial_share(column)
    beside += f"{multiple(share):>9}" if share is not None else ""
    note = f"  {row.notes[column]}" if column in row.notes else ""
    answered = row.requests_a_second(column)
    note += f"  {_rounded(answered)} requests a second" if answered is not None else ""
    return f"{duration(median):>9} {spread:24}{beside}{note}"


def _rounded(number: float) -> str:
    """Return a large number in thousands."""
    return f"{round(number, -3):,.0f}"


def _requests(row: Row) -> str:
    kinds = sorted(row.requests.items(), key=lambda item: -item[1].count)
    counts = ", ".join(f"{kind} {found.count}" for kind, found in kinds)
    total_s = sum(found.handler_s for _, found in kinds)
    return f"{counts}; in handlers {duration(total_s)}"


def as_markdown(results: Results) -> str:
    """Return a table: times in the plain directory and multiples of it in the first mode; in each
    mode yolofs as a multiple of fuse-overlayfs; in the last one yolofs as a multiple of
    the pass-through, if it was measured, and the serial shares of fuse-overlayfs and yolofs.
    """
    modes = _modes(results)
    others = [column for column in results.columns if column != REFERENCE]
    beside = [(PEER, mode) for mode in modes]
    beside += [(FLOOR, modes[-1])] if FLOOR in others else []
    head = [REFERENCE, *others, *(f"yolofs / {column}, {mode}" for column, mode in beside)]
    head.append(f"serial share, {PEER}; yolofs")
    lines = ["| | " + " | ".join(head) + " |", "|---" * (len(head) + 1) + "|"]
    for row in results.rows:
        if row.mode != modes[0]:
            continue
        plain = row.median(REFERENCE)
        cells = [duration(plain) if plain is not None else "-"]
        cells += [_times(row, column) for column in others]
        ratios = [results.row(row.name, row.title, mode).ratio("yolofs", column) for column, mode in beside]
        cells += [multiple(ratio) if ratio is not None else "-" for ratio in ratios]
        shares = [results.row(row.name, row.title, modes[-1]).serial_share(column) for column in (PEER, "yolofs")]
        cells += ["; ".join(multiple(share) if share is not None else "-" for share in shares)]
        lines.append(f"| {row.title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _times(row: Row, column: str) -> str:
    ratio = row.ratio(column, REFERENCE)
    answered = row.requests_a_second(column)
    if ratio is not None:
        return f"x{multiple(ratio)}" + (f" ({_rounded(answered)} requests a second)" if answered is not None else "")
    median = row.median(column)
    return duration(median) if median is not None else "-"
