"""``.yolofs.toml`` as typed settings: :func:`yolofs.config.load.load` is the way in."""
