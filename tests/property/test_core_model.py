"""The model test on the core, without a mount."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.model_steps import model_settings
from tests.support.view_machine import LINKED, StatesMachine, ViewMachine

pytestmark = pytest.mark.timeout(600)  # on a busy machine


class CoreMachine(ViewMachine):
    """The overlay, driven as the kernel would."""

    make_driver = CoreDriver


TestCoreModel = CoreMachine.TestCase
TestCoreModel.settings = model_settings(ci=(6, 50), nightly=(200, 100))


class CoreStatesMachine(StatesMachine):
    """The same, by few rules: most of what it does is names of files with several, looked at in any
    order.
    """

    make_driver = CoreDriver


@pytest.mark.parametrize("change", [("chmod", 0o600), ("append", b"more"), ("setxattr", b"user.one", b"v")])
@pytest.mark.parametrize("looked", [list(order) for some in LINKED[:2] for order in itertools.permutations(some)])
def test_the_name_that_moved_is_the_one_that_base_loses(looked: list[bytes], change: tuple[Any, ...]) -> None:
    """What the machine draws too rarely for a run of CI."""
    machine = CoreStatesMachine()
    try:
        machine.change_one_that_moved(looked=looked, old=b"a", new=b"b/c", change=change)
        machine.commit()
    finally:
        machine.teardown()


TestCoreStates = CoreStatesMachine.TestCase
TestCoreStates.settings = model_settings(ci=(10, 8), nightly=(20_000, 8))
