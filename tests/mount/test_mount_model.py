"""The model test on a real mount."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.mount.in_process import MountedView
from tests.property.view_machine import ViewMachine

pytestmark = pytest.mark.mount


class MountDriver(MountedView):
    """The base directory is what the machine compares after a commit."""

    def __init__(self, base: bytes) -> None:
        super().__init__(base)


class MountMachine(ViewMachine):
    """A view behind the kernel."""

    make_driver = MountDriver


TestMountModel = MountMachine.TestCase
TestMountModel.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)
