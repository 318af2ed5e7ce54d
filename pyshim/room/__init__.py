"""Resident blocks of one kernel beside one of communication: `overlap policy room`."""
