"""From the files of a report folder to one report: numbers, and what the numbers alone would hide."""
