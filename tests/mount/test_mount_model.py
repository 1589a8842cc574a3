"""The model test on a real mount."""

from __future__ import annotations

import pytest
from hypothesis.stateful import invariant

from tests.mount.test_listings import assert_true
from tests.support.in_process import MountedView
from tests.support.model_steps import model_settings
from tests.support.view_machine import StatesMachine, ViewMachine

pytestmark = [pytest.mark.mount, pytest.mark.timeout(600)]


class MountDriver(MountedView):
    """Attributes are among what is compared."""

    def __init__(self, base: bytes) -> None:
        super().__init__(base, xattrs=True)


class MountMachine(ViewMachine):
    """A view behind the kernel."""

    make_driver = MountDriver

    @invariant()
    def what_the_kernel_was_told_is_still_true(self) -> None:
        """By listings above all, which are told again as they were."""
        assert isinstance(self.view, MountDriver)
        assert_true(self.view)


TestMountModel = MountMachine.TestCase
TestMountModel.settings = model_settings(ci=(3, 30), nightly=(50, 100))


class MountStatesMachine(StatesMachine):
    """The same, by few rules: most of what it does is names of files with several, looked at in any
    order.
    """

    make_driver = MountDriver


TestMountStates = MountStatesMachine.TestCase
TestMountStates.settings = model_settings(ci=(5, 6), nightly=(1000, 8))
