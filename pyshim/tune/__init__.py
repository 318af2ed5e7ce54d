"""`overlap tune`: a whole program under each choice, in turns, and the best of them as a policy."""
