"""Bytes: reading and writing with fio, where a figure is the mean latency of one request of fio's;
single bytes; and large files made without a write.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.columns import UnsupportedError
from benchmarks.workload import Cell, Scene, Size, Workload, check

PATTERN = bytes.fromhex("c0ffee42")
MIB = 1 << 20
BLOCK = 512
READS = {
    "seqread4k": ("read 4 KiB, sequential", "--rw=read --bs=4k --ioengine=psync"),
    "randread4k": ("read 4 KiB, random", "--rw=randread --bs=4k --ioengine=psync"),
    "seqread1m": ("read 1 MiB, sequential", "--rw=read --bs=1m --ioengine=psync"),
    "mmapread4k": ("read 4 KiB by mmap, random", "--rw=randread --bs=4k --ioengine=mmap"),
}
WRITES = {
    "seqwrite4k": ("write 4 KiB, sequential, new file", "--rw=write --bs=4k --ioengine=psync"),
    "seqwrite1m": ("write 1 MiB, sequential, new file", "--rw=write --bs=1m --ioengine=psync"),
    "randwrite4k": ("write 4 KiB, random, staged file", "--rw=randwrite --bs=4k --ioengine=psync"),
    "mmapwrite4k": ("write 4 KiB by mmap, staged file", "--rw=write --bs=4k --ioengine=mmap"),
    "fsync4k": ("write 4 KiB and fsync", "--rw=write --bs=4k --ioengine=psync --fsync=1"),
}
ON_STAGED = ("randwrite4k", "mmapwrite4k")
SYNCED_BYTES = 256 << 10
SINGLE_BYTES = 20_000
"""So many are written one by one, at most."""
COPIED = 2
"""How much larger the copied file is than the allocated one."""


def _build(base: Path, size: Size) -> None:
    for name in READS:
        for state in ("warm", "cold"):
            (base / f"{name}_base_{state}").write_bytes(PATTERN * (size.data_mib * MIB // len(PATTERN)))


def _fio(cell: Cell, path: Path, options: str, size_bytes: int) -> float:
    """Run one job over a file; return the mean seconds of a request, of fsync too where one follows
    each write.
    """
    if not shutil.which("fio"):
        raise UnsupportedError("fio is not installed: scripts/setup-bench.sh")
    words = ["fio", "--name=job", f"--filename={path}", f"--size={size_bytes}", *options.split()]
    words += ["--fallocate=none", "--invalidate=0", "--thread", "--output-format=json"]
    words += [f"--buffer_pattern=0x{PATTERN.hex()}", "--randrepeat=1", "--create_on_open=1"]
    output = cell.run(words)
    job = json.loads(output[output.index("{") :])["jobs"][0]
    check("fio met no error", holds=job["error"] == 0)
    done = job["write" if "write" in options else "read"]
    check("fio did all of it", holds=done["io_bytes"] == size_bytes)
    nanoseconds = done["lat_ns"]["mean"]
    if "--fsync=1" in options:
        nanoseconds += job["sync"]["lat_ns"]["mean"]
    return float(nanoseconds) * 1e-9


def _check_content(path: Path, size_bytes: int) -> None:
    check("the file holds its bytes", holds=path.read_bytes() == PATTERN * (size_bytes // len(PATTERN)))


def _read(name: str, state: str, is_cold: bool, cell: Cell) -> float:
    path = cell.path(f"{name}_{state}_{'cold' if is_cold else 'warm'}")
    size = cell.size.data_mib * MIB
    if state == "staged":
        path.write_bytes(PATTERN * (size // len(PATTERN)))
    if is_cold:
        cell.drop_caches()
    else:
        _check_content(path, size)
    took = _fio(cell, path, READS[name][1], size)
    _check_content(path, size)
    return took


def _write(name: str, cell: Cell) -> float:
    path = cell.path(name)
    size = SYNCED_BYTES if name == "fsync4k" else cell.size.data_mib * MIB
    if name in ON_STAGED:
        path.write_bytes(bytes(size))
    took = _fio(cell, path, WRITES[name][1], size)
    _check_content(path, size)
    return took


def _write_bytes(cell: Cell) -> float:
    cell.path("bytes").mkdir()
    return cell.micro("write-byte", "bytes", min(SINGLE_BYTES, cell.size.files * 200))


def _allocate(cell: Cell) -> float:
    size = cell.size.large_mib * MIB
    fd = os.open(cell.path("allocated"), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        start = time.perf_counter()
        os.posix_fallocate(fd, 0, size)
        took = time.perf_counter() - start
    finally:
        os.close(fd)
    found = cell.path("allocated").stat()
    check("the file has its size", holds=found.st_size == size)
    check("and its room on the disk", holds=found.st_blocks * BLOCK >= size)
    return took


def _copy(cell: Cell) -> float:
    size = COPIED * cell.size.large_mib * MIB
    large, copy = cell.path("large"), cell.path("copy")
    large.write_bytes(PATTERN * (size // len(PATTERN)))
    start = time.perf_counter()
    cell.run(["cp", large, copy])
    took = time.perf_counter() - start
    _check_content(copy, size)
    for path in (large, copy):  # else the disk is written to while others are measured
        path.unlink()
    return took


def _workloads(size: Size) -> Sequence[Workload]:
    made = [
        Workload(
            f"{name}_{state}_{'cold' if is_cold else 'warm'}",
            f"{READS[name][0]}; {state}, {'cold' if is_cold else 'warm'}",
            partial(_read, name, state, is_cold),
        )
        for name in READS
        for state in ("base", "staged")
        for is_cold in (True, False)
    ]
    made += [Workload(name, title, partial(_write, name)) for name, (title, _) in WRITES.items()]
    return [
        *made,
        Workload("write_bytes", "write 1 byte, sequential, new file", _write_bytes),
        Workload("allocate", f"posix_fallocate {size.large_mib} MiB", _allocate),
        Workload("copy_large", f"cp of {COPIED * size.large_mib} MiB within the view", _copy),
    ]


SCENES = (Scene("data", _build, _workloads),)
