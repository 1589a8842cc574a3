"""The model test on the core, without a mount."""

from __future__ import annotations

import pytest

from tests.model_steps import model_settings
from tests.property.core_driver import CoreDriver
from tests.property.view_machine import ViewMachine

pytestmark = pytest.mark.timeout(600)  # on a busy machine


class CoreMachine(ViewMachine):
    """The overlay, driven as the kernel would."""

    make_driver = CoreDriver


TestCoreModel = CoreMachine.TestCase
TestCoreModel.settings = model_settings(ci=(200, 50), nightly=(200, 100))
