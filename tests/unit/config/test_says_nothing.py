"""A file without settings is not parsed, and the outcome is the same."""

from __future__ import annotations

import msgspec
import pytest

from yolofs.cli.sessions import starting
from yolofs.config.load import _read_text, parse_table
from yolofs.config.settings import LearnedRules, Settings, UserSettings
from yolofs.errors import ConfigError

TEXTS = [
    starting.SETTINGS.decode(),
    "",
    "\n\n",
    "# a\n[run]\n[mount]\n[rules]\n[diff]\n",
    "[run]\n[run]\n",
    "[rules]\n# \x07\n",
    "# \u202e\n",
    "[run] \n",
    " [run]\n",
    "[other]\n",
    "[root]\n",
    '[run]\nnetwork = "none"\n',
    "#\r\n[run]\r\n",
]


@pytest.mark.parametrize("table", [Settings, UserSettings, LearnedRules])
@pytest.mark.parametrize("text", TEXTS)
def test_a_file_that_is_not_parsed_has_the_outcome_of_one_that_is(text: str, table: type[msgspec.Struct]) -> None:
    def outcome(read: object) -> object:
        try:
            return read() if callable(read) else None
        except ConfigError as error:
            return error.message

    assert outcome(lambda: parse_table(text.encode(), "f", table)) == outcome(
        lambda: _read_text.__wrapped__(text.replace("\r\n", "\n"), "f", table)
    )


def test_the_file_that_init_writes_needs_no_parser() -> None:
    before = _read_text.cache_info().misses
    assert parse_table(starting.SETTINGS, ".yolofs.toml", Settings) == Settings()
    assert _read_text.cache_info().misses == before
