"""The model test on the core, without a mount."""

from __future__ import annotations

from hypothesis import settings

from tests.property.core_driver import CoreDriver
from tests.property.view_machine import ViewMachine


class CoreMachine(ViewMachine):
    """The overlay, driven as the kernel would."""

    make_driver = CoreDriver


TestCoreModel = CoreMachine.TestCase
TestCoreModel.settings = settings(max_examples=200, stateful_step_count=50, deadline=None)
