"""The model test on a real mount."""

from __future__ import annotations

import pytest

from tests.model_steps import model_settings
from tests.mount.in_process import MountedView
from tests.property.view_machine import ViewMachine

pytestmark = [pytest.mark.mount, pytest.mark.timeout(600)]


class MountDriver(MountedView):
    """Attributes are among what is compared."""

    def __init__(self, base: bytes) -> None:
        super().__init__(base, xattrs=True)


class MountMachine(ViewMachine):
    """A view behind the kernel."""

    make_driver = MountDriver


TestMountModel = MountMachine.TestCase
TestMountModel.settings = model_settings(ci=(20, 30), nightly=(50, 100))
