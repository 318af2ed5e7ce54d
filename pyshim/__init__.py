"""overlap-run: raise the GPU streams that others wait for, in an unmodified program."""

__version__ = "0.3.0"
