"""The rules as `yolofs rule` reads and shows them."""
