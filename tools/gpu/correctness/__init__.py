"""Does real software compute the same behind the library? Bare against shimmed, on a real GPU."""
