"""The runs that are going on."""
