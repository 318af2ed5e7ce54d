"""Databases of which columns are damaged: kernels, names, ranges, and the waits of streams and of the host."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest
from made_waits import Program

from pyshim.diagnosis.find import find
from pyshim.profiles import open_trace
from pyshim.profiles.record import MemoryOperation, TracedLaunch
from tests.traces.test_waiting import by_host, by_nccl, resident, steps


@pytest.mark.parametrize("nothing", ["NULL", "x'ff'", "'x'", "1.5"])
def test_a_database_with_nothing_in_its_columns(tmp_path, nothing):
    """Each column of each table in its turn, in all of its rows."""
    program = steps(steps(Program(), by_nccl), by_host)
    whole, changed = program.nsys(tmp_path / "whole.sqlite"), tmp_path / "changed.sqlite"
    with closing(sqlite3.connect(whole)) as database:
        schema = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = {table: [row[1] for row in database.execute(f"PRAGMA table_info({table})")] for table in schema}
    kinds = ("KERNEL", "MEMCPY", "RUNTIME", "SYNCHRONIZATION", "CUDA_EVENT")
    assert {f"CUPTI_ACTIVITY_KIND_{kind}" for kind in kinds} | {"NVTX_EVENTS", "StringIds"} <= columns.keys()
    for table, column in ((table, column) for table, names in columns.items() for column in names):
        shutil.copy(whole, changed)
        with closing(sqlite3.connect(changed)) as database:
            database.execute("PRAGMA synchronous = OFF")
            database.execute(f"CREATE TABLE copied AS SELECT * FROM {table}")  # without NOT NULL and keys
            database.execute(f"DROP TABLE {table}")
            database.execute(f"ALTER TABLE copied RENAME TO {table}")
            database.execute(f'UPDATE {table} SET "{column}" = {nothing}')
            database.commit()
        find(str(changed), resident)
        for record in open_trace(str(changed)).activity():
            assert isinstance(getattr(record, "kernel", ""), str) and isinstance(getattr(record, "name", ""), str)
            assert not isinstance(record, (TracedLaunch, MemoryOperation)) or record.stream.isdigit()
