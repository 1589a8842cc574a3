"""Percent-encoded bytes: the same as Python's own module says."""

from __future__ import annotations

from urllib import parse

from hypothesis import example, given
from hypothesis import strategies as st

from yolofs.text.percent import quote_from_bytes, unquote_to_bytes


@given(st.binary())
@example(bytes(range(256)))
def test_bytes_are_written_as_urllib_writes_them_and_read_back(raw: bytes) -> None:
    assert quote_from_bytes(raw) == parse.quote_from_bytes(raw)
    assert unquote_to_bytes(quote_from_bytes(raw)) == raw


@given(st.text(st.sampled_from("%aF0g +_-%é")))
@example("%")
@example("%4")
@example("%zz%%41")
@example("%é1%+1%1_")
def test_any_text_is_read_as_urllib_reads_it(text: str) -> None:
    assert unquote_to_bytes(text) == parse.unquote_to_bytes(text)
