"""Following what changes outside: base, and the files that rules come from."""
