"""Bytes in JSON: as text, and exactly beside it where they are no text."""

from __future__ import annotations

from yolofs.text.json_text import text_fields


def test_a_path_that_is_utf8_is_a_plain_string() -> None:
    assert text_fields("path", "/ä b".encode()) == {"path": "/ä b"}


def test_a_path_that_is_not_utf8_has_its_exact_bytes_beside_it() -> None:
    assert text_fields("path", b"/caf\xe9%") == {"path": "/caf\ufffd%", "path_bytes": "/caf%E9%25"}
