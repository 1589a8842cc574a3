"""What `commit`, `undo` and `hunks` ask, show and refuse."""
