"""What waits behind what in a profile, why, and what to do about it: `overlap explain`."""
