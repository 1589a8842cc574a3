"""The override tree, and what is derived from it and base: hard links, drift, regions,
checkpoints.
"""
