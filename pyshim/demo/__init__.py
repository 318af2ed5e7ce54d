"""The engine of `overlap demo`: run a bundled stencil without and with overlap-run, and draw what happened.

arms (runs the program) -> picture (lines of text). Nothing here prints.
"""
