"""How many files this process may have open."""

from __future__ import annotations

import contextlib
import resource


def allow_open_files(count: int) -> int:
    """Let this process have so many files open at once, as far as the hard limit lets it; return
    how many it may have, at most ``count``.
    """
    with contextlib.suppress(ValueError, OSError):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = count if hard == resource.RLIM_INFINITY else min(hard, count)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return 0
