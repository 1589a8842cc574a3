"""What a shell completes, and how it asks."""
