"""The engine of `overlap demo`: run the bundled programs in three arms, read what happened, say why.

arms (runs the program) -> timeline (what every kernel did) -> reasons, drawing (lines of text).
Nothing here prints.
"""
