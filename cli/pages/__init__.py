"""Pages of ``docs`` that are written from what the program says of itself."""
