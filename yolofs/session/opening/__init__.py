"""Finding a session, and what comes before it can be used; repairing and moving one."""
