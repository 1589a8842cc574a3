"""Bytes and text: characters, patterns, diffs, JSON.  Nothing here knows of yolofs."""
