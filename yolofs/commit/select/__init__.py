"""What a commit takes and what it leaves staged."""
