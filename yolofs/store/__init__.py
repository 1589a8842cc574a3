"""The places of data: base, which is read-only, the store of staged data, and what both read
through.
"""
