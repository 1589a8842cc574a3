"""Benchmarks: ``python -m benchmarks`` beside other filesystems; ``.core``, ``.answering``,
``.scale`` without a mount.

How they measure, and what came of it: docs/design/performance.md.
"""
