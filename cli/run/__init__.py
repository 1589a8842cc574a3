"""What `yolofs run` does around the sandbox."""
