"""What was asked, refused and run."""
