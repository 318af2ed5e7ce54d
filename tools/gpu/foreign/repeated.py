"""repeated.py COUNT PATTERN SCRIPT: run a script so often in one process; print the median of the number it prints."""

import contextlib
import io
import re
import runpy
import statistics
import sys

count, pattern, script = sys.argv[1:]
found = []
for _ in range(int(count)):
    with contextlib.redirect_stdout(io.StringIO()) as said:
        runpy.run_path(script, run_name="__main__")
    found.append(float(re.findall(pattern, said.getvalue())[-1]))
print("median", statistics.median(found[len(found) // 4 :]))
