"""Judging accesses: the gate, the questions that it asks, and why a path is as it is."""
