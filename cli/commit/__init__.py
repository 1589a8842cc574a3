"""What `commit` and `undo` ask, show and refuse."""
