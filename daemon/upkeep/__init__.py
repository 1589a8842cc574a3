"""What is done while nobody asks: checkpoints, the collector, the log."""
