"""Patterns of paths: names, wildcards and any number of directories, many at once."""

from __future__ import annotations

import pytest

from yolofs.text.path_patterns import Patterns, parse_pattern


def found(path: str, *patterns: str) -> str | None:
    """Return the first pattern that fits a path, relative ones below ``/p``, ``~`` being ``/h``."""
    return Patterns([(parse_pattern(pattern, b"/p", b"/h"), pattern) for pattern in patterns]).find(
        path.strip("/").encode()
    )


@pytest.mark.parametrize(
    ("pattern", "may_be", "may_not_be"),
    [
        ("x", "x", "xy"),
        ("*.service", "a.service", "plain"),
        (".envrc.*", ".envrc.local", "plain"),
        ("a*z", "abz", "plain"),
        ("a?", "ab", "plain"),
        ("a[bc]", "ab", "plain"),
        ("*a?z", "aaxz", "plain"),
        ("*[ab]z", "bz", ""),
        ("[ab]", "a", ""),
        ("*mid*", "amidb", ""),
    ],
)
def test_most_names_are_seen_to_begin_no_pattern_that_may_begin_anywhere(
    pattern: str, may_be: str, may_not_be: str
) -> None:
    """The patterns are looked at together: one that may begin with any name would slow down all."""
    patterns = Patterns([(parse_pattern(f"**/{one}", b"/p", b"/h"), one) for one in (pattern, "other", "*.ending")])
    assert patterns.find(f"d/{may_be}".encode()) == pattern
    assert patterns.first_names.may_hold(may_be.encode())
    assert patterns.find(b"d/plain") is None
    assert not may_not_be or not patterns.first_names.may_hold(may_not_be.encode())


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("a", "/p/a", True),
        ("a", "/p/a/b/c", True),
        ("a", "/p/b/a", False),
        ("a", "/p/ab", False),
        ("./a/", "/p/a", True),
        ("../q", "/q/x", True),
        (".", "/p/x", True),
        (".", "/q", False),
        ("/", "/q", True),
        ("~", "/h/x", True),
        ("~/.ssh", "/h/.ssh/id", True),
        ("~x", "/p/~x", True),
        ("*.log", "/p/x.log", True),
        ("*.log", "/p/d/x.log", False),
        ("**/*.log", "/p/d/x.log", True),
        ("**/*.log", "/elsewhere/x.log", True),
        ("**/*.log", "/x.log/inner", True),
        ("**/*.log", "/p/x.logs", False),
        ("**/x", "/x", True),
        ("**/x/y", "/a/x/y/z", True),
        ("**/x/y", "/a/x/b/y", False),
        ("d/**/x", "/p/d/x", True),
        ("d/**/x", "/p/d/1/2/x", True),
        ("d/**/x", "/p/x", False),
        ("d/**/x/y", "/p/d/x/x/y", True),
        ("d/**", "/p/d", True),
        ("d/**/**/x", "/p/d/x", True),
        ("**", "/p/anything", True),
        ("**", "/q", False),
        ("d/*/x", "/p/d/1/x", True),
        ("d/*/x", "/p/d/1/2/x", False),
        ("?[ab]c", "/p/xbc", True),
        ("?[ab]c", "/p/xdc", False),
        ("[*]", "/p/*", True),
        ("[*]", "/p/x", False),
        ("**/\udcff*", "/p/\udcffx", True),
    ],
)
def test_a_pattern_fits_the_paths_it_says(pattern: str, path: str, fits: bool) -> None:
    name = path.strip("/").encode(errors="surrogateescape")
    assert (Patterns([(parse_pattern(pattern, b"/p", b"/h"), 1)]).find(name) is not None) is fits


def test_the_first_of_several_counts_whatever_comes_first_in_the_path() -> None:
    assert found("/p/x/y", "**/y", "**/x") == "**/x"  # what fits the directory above has decided by then
    assert found("/p/x", "**/x*", "x") == "**/x*"
    assert found("/p/x", "x", "**/x*") == "x"


@pytest.mark.parametrize(
    ("path", "leads"),
    [("h", True), ("h/.config", True), ("p/.vscode", True), ("h/other", False), ("p/.vscode/x", False), ("p", False)],
)
def test_a_directory_on_the_way_to_a_pattern_is_told(path: str, leads: bool) -> None:
    patterns = Patterns(
        [(parse_pattern(text, b"/p", b"/h"), 1) for text in ("~/.config/fish/*", "**/.vscode/t.json", "/d/**/x")]
    )
    assert (patterns.leads_to(path.encode()) is not None) is leads


def test_thousands_of_patterns_with_the_same_beginning_cost_little() -> None:
    patterns = Patterns([(parse_pattern(f"/home/*/x{n}", b"", b""), n) for n in range(1000)])
    for n in range(20_000):  # 20 million comparisons, if each were compared with each
        assert patterns.find(b"home/u/y%d" % n) is None
    assert patterns.find(b"home/u/x7") == 7
