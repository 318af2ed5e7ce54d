"""`overlap probe`: what the block scheduler of this GPU does while a block of higher priority fits nowhere.

measure.py takes times on the GPU, in a process of its own; judge.py says what they mean; ask.py is between the two.
Where answers are kept, and how overlap-run uses them: pyshim/launch/dispatch.py.
"""
