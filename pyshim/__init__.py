"""overlap-run: run an unmodified multi-GPU program so that its communication overlaps its computation."""

__version__ = "0.3.0"
