"""What waits behind what in traces (trace.py, from pyshim/traces), and sizes that make room (room.py)."""
