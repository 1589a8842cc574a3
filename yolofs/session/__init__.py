"""A session and what is done with it: open, commit, undo, merge, move, archive, forget."""
