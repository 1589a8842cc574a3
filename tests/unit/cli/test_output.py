"""Colours, where a terminal wants them."""

from __future__ import annotations

import io

import pytest

from yolofs.cli import output


@pytest.mark.parametrize(
    ("environment", "expected"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colours_are_for_terminals_that_want_them(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = io.StringIO()
    assert not output.has_colour(stream)
    monkeypatch.setattr(stream, "isatty", lambda: True)
    assert output.has_colour(stream) is expected
    assert output.paint("x", "red", stream=stream) == ("\x1b[31mx\x1b[0m" if expected else "x")
