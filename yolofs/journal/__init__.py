"""The journal: what changed in the view, record by record; its file, its damage, its timeline."""
