"""Empty: its bytecode file is where :mod:`yolofs.cli.kept_bytecode` keeps that of other modules, so
that whoever removes this module removes it too.
"""
