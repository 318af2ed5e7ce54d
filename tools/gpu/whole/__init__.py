"""Whole programs on two GPUs: what the default policy, the trial and each control change, and what could be gained."""
