"""The engine of `overlap demo`: run the bundled program in four arms, read what happened, say why.

arms (runs the program) -> timeline (what every kernel did) -> facts (waits, sizes) -> reasons, drawing (lines of text).
Nothing here prints.
"""
