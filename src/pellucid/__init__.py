"""Pellucid: a native front end for PyTorch programs."""

__version__ = "0.1.0"
