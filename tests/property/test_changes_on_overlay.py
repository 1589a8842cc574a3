"""The model test once more, now for the changes between the states that the overlay itself
records.
"""

from __future__ import annotations

import pytest
from hypothesis.stateful import rule

from tests.support.changes_model import check_pair
from tests.support.core_driver import CoreDriver
from tests.support.model_steps import model_settings
from tests.support.view_machine import ViewMachine
from yolofs.paths import Generation

pytestmark = pytest.mark.timeout(600)  # on a busy machine


class ChangesMachine(ViewMachine):
    """Compares the present with every generation, in both directions."""

    make_driver = CoreDriver
    view: CoreDriver
    commit = abort = None  # type: ignore[assignment]  # no such rules here: they leave nothing to compare

    @rule()
    def changes(self) -> None:
        session = self.view.session
        present = self.view.overlay.tree
        for generation in range(session.timeline.present + 1):
            old = session.state(Generation(generation))
            check_pair(old, present, session.base, session.store)
            check_pair(present, old, session.base, session.store)


TestChangesOnOverlay = ChangesMachine.TestCase
TestChangesOnOverlay.settings = model_settings(ci=(4, 40), nightly=(2000, 50))
