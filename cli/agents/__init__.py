"""What agents are told, and the hooks that start yolofs for them."""
