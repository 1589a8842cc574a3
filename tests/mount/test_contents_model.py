"""Files hold what the model says, whoever changes them, and however they are open."""

from __future__ import annotations

import pytest

from tests.mount.content_machine import ContentMachine
from tests.support.model_steps import model_settings

pytestmark = [pytest.mark.mount, pytest.mark.timeout(600)]

TestContents = ContentMachine.TestCase
TestContents.settings = model_settings(ci=(3, 20), nightly=(200, 50))
