"""What ``yolofs doctor`` looks at, and what it repairs."""
