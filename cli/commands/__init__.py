"""The commands, one module each: arguments in, one call, one printer out."""
