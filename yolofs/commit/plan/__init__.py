"""From a tree to the steps that make base equal to it, and the checks of that."""
