"""What `init` and `sessions` do: sessions are started, listed, forgotten, and moved to another
project.
"""
