"""How long a model or a property is tested: a little in CI, at length by night."""

from __future__ import annotations

import os

from hypothesis import Phase, settings


def is_nightly() -> bool:
    """Tell whether there is time for everything."""
    return os.environ.get("HYPOTHESIS_PROFILE") == "nightly"


def how_many(*, ci: int, nightly: int) -> int:
    """Return how many there are to be in the profile that runs."""
    return nightly if is_nightly() else ci


def model_settings(*, ci: tuple[int, int], nightly: tuple[int, int]) -> settings:
    """Return the settings for one of two profiles, each given as examples and steps in each."""
    examples, steps = (how_many(ci=few, nightly=many) for few, many in zip(ci, nightly, strict=True))
    return settings(max_examples=examples, stateful_step_count=steps, deadline=None)


def so_many(*, ci: int, nightly: int) -> settings:
    """Return the settings for a property that takes long: how many examples are drawn in each of
    the profiles.
    """
    return model_settings(ci=(ci, 1), nightly=(nightly, 1))


def by_night(*, nightly: int) -> settings:
    """Return the settings for a property of which CI tries the given examples alone, and the night
    draws many more.
    """
    phases = tuple(Phase) if is_nightly() else (Phase.explicit,)
    return settings(max_examples=nightly, phases=phases, deadline=None)
