"""How long the model test runs: a little in CI, at length by night."""

from __future__ import annotations

import os

from hypothesis import settings


def model_settings(*, ci: tuple[int, int], nightly: tuple[int, int]) -> settings:
    """Return the settings for one of two profiles, each given as examples and steps in each."""
    is_nightly = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
    examples, steps = nightly if is_nightly else ci
    return settings(max_examples=examples, stateful_step_count=steps, deadline=None)
