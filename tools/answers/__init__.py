"""Tables of docs/results.md and docs/data/*.csv, from measured and simulated data and the planner's own arithmetic.

Nothing here writes a sentence: the conclusions in docs/results.md are written by hand.
"""
