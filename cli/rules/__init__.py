"""What `rule` and `trust` do: rules are read, shown, learned and agreed to."""
