"""What is shown: lines for people, JSON for programs."""
