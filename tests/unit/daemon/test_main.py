"""What the daemon's process is made ready for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_no_collection_of_garbage_looks_at_what_was_imported(tmp_path: Path) -> None:
    code = """if True:
        import gc, sys
        from yolofs.daemon.main import main
        assert main(["--project", sys.argv[1]]) != 0  # there is no session
        print(gc.get_freeze_count() / len(gc.get_objects()))
    """
    words = [sys.executable, "-P", "-c", code, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert float(done.stdout) > 4
