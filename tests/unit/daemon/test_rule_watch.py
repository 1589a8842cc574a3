"""When what rule files look like is taken for what they are."""

from __future__ import annotations

import os
from pathlib import Path

import trio

from yolofs.daemon.rule_watch import _look, _settled


def test_a_file_that_is_gone_at_the_first_look_may_be_put_back_by_an_editor(tmp_path: Path) -> None:
    paths = (os.fsencode(tmp_path / "rules.toml"),)

    async def put_back() -> None:
        await trio.sleep(0.3)
        (tmp_path / "rules.toml").touch()

    async def watch() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(put_back)
            assert await _settled(paths, None, _look(paths)) == _look(paths) != (None,)

    trio.run(watch)
