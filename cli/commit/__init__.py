"""What `commit`, `undo`, `abort` and `hunks` ask, show and refuse."""
