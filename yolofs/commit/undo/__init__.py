"""What takes a commit out of base again."""
