"""What happened before, and the states that were: of the journals that commits have ended, too."""
