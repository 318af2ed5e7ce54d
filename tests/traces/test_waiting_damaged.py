"""Waits in databases of which columns are damaged."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest
from made_waits import Program

from pyshim.traces.waiting import find
from tests.traces.test_waiting import by_nccl, resident, steps


@pytest.mark.parametrize("nothing", ["NULL", "x'ff'"])
def test_a_database_with_nothing_in_its_columns(tmp_path, nothing):
    whole, changed = steps(Program(), by_nccl).nsys(tmp_path / "whole.sqlite"), tmp_path / "changed.sqlite"
    waits = ("RUNTIME", "SYNCHRONIZATION", "CUDA_EVENT")
    tables = (*(f"CUPTI_ACTIVITY_KIND_{name}" for name in waits), "ENUM_CUPTI_SYNC_TYPE")
    for table in tables:
        with closing(sqlite3.connect(whole)) as database:
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        assert columns
        for column in columns:
            shutil.copy(whole, changed)
            with closing(sqlite3.connect(changed)) as database:
                database.execute("PRAGMA synchronous = OFF")
                database.execute(f"CREATE TABLE copied AS SELECT * FROM {table}")
                database.execute(f"DROP TABLE {table}")
                database.execute(f"ALTER TABLE copied RENAME TO {table}")
                database.execute(f"UPDATE {table} SET {column} = {nothing}")
                database.commit()
            find(str(changed), resident)
