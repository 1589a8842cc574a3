"""What `init`, `sessions` and `unmount` do: sessions are started, listed, forgotten, unmounted, and
moved to another project.
"""
