"""What waits behind what in traces (trace.py, from pyshim/traces), and what is done with one kernel (answer.py)."""
