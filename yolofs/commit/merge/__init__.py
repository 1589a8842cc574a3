"""Where base changed, too: finding it, telling it, merging it."""
