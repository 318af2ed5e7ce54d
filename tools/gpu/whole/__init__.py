"""Whole programs on two GPUs: what the default policy and their own priorities change, and what could be gained."""
