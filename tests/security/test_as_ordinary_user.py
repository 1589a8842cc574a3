"""All tries also as an ordinary user, whom root makes for the purpose; an ordinary user runs them directly."""

from __future__ import annotations

import pytest

from tests.mount.test_as_ordinary_user import run_tests

pytestmark = [pytest.mark.mount, pytest.mark.root_only, pytest.mark.timeout(900), pytest.mark.slow]


@pytest.mark.parametrize(
    "name",
    [
        "copies_and_moves",
        "planted_session",
        "sessions_are_hidden",
        "state_directory",
        "the_session_is_out_of_reach",
        "whose_it_is",
    ],
)
def test_the_tries(name: str) -> None:
    run_tests(f"tests/security/test_{name}.py")
