"""Who would gain on a cluster, by the recipe of docs/how-to/who-gains.md: real Slurm, its TaskProlog, two users."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import cluster
import pytest
import site_folder

from pyshim import _native

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/who-gains.md"
USERS = ("root", "nobody")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder that every user may read."""
    folder = Path(tempfile.mkdtemp(prefix="jobs-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def spool(place: Path) -> Path:
    folder = place / "spool"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


@pytest.fixture(scope="module")
def slurm(start_cluster: Callable[..., cluster.Cluster], installed: Path, place: Path, spool: Path) -> cluster.Cluster:
    """Its TaskProlog is the one of the page, for other folders; the site's default is observe."""
    site = place / "overlap"
    shutil.copytree(installed, site)
    site_folder.belongs_to(site, installed)
    (site / "default").write_text("observe\n")
    (script,) = re.findall(r"```text\n(#!/bin/sh\n.*?)```", PAGE.read_text(), re.DOTALL)
    prolog = place / "task-prolog"
    prolog.write_text(script.replace("/opt/overlap/", f"{site}/").replace("/var/spool/overlap", str(spool)))
    prolog.chmod(0o755)
    return start_cluster(prologs=prolog)


@pytest.fixture(scope="module")
def program(place: Path) -> str:
    """The bundled program where every user may start it, for a simulated GPU."""
    for name in ("demo", "simgpu"):
        shutil.copytree(_native.DIRECTORY / name, place / name)
    return str(place / "demo" / "demo-stencil")


def test_two_users_under_the_prolog_of_the_page(
    slurm: cluster.Cluster,
    program: str,
    place: Path,
    spool: Path,
    overlap: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    simulated = {"SIMGPU": "h100", "LD_LIBRARY_PATH": str(place / "simgpu"), "OVERLAP_QUIET": "1"}
    for user, runs, policy in (("root", 2, {}), ("nobody", 1, {"OVERLAP_POLICY": "default"})):
        group = "root" if user == "root" else "nogroup"
        for _ in range(runs):
            done = slurm.srun(
                *("-N2", "-n2", program),
                env={**simulated, **policy},
                **{"user": user, "group": group, "extra_groups": [], "cwd": "/"},
            )
            assert done.returncode == 0, done.stderr
    (spool / "nobody" / "notes").mkdir()
    (spool / "nobody" / "notes" / "x.1.0.page").write_text("hostile")
    answer = json.loads(overlap("report", str(spool), "--jobs", "--json").stdout)
    rows = {row["user"]: row for row in answer["programs"]}
    assert set(rows) == set(USERS) and answer["skipped"] == {"pages: too short for a page": 1}
    assert [(rows[user]["program"], rows[user]["runs"], rows[user]["ranks"]) for user in USERS] == [
        ("demo-stencil", 2, 2),
        ("demo-stencil", 1, 2),
    ]
    assert rows["nobody"]["verdict"] == "raised"
    assert rows["nobody"]["launches_raised"] > 0.5 * rows["nobody"]["launches"]
    assert rows["root"]["verdict"] == "would be raised"
    shares = [rows[user]["launches_raised"] / rows[user]["launches"] for user in USERS]
    assert shares[0] == pytest.approx(shares[1], abs=0.1), "what observe says is what the default does"
    assert all(page.stat().st_mode & 0o077 == 0 for page in spool.rglob("*.page") if page.parent.name != "notes")
    shown = overlap("report", str(spool), "--jobs", env={"COLUMNS": ""}).stdout.splitlines()
    assert shown[0].startswith("done: read 3 runs of 2 programs by 2 users: ")
    assert sorted(line.split()[:3] for line in shown[-2:]) == [
        ["nobody", "demo-stencil", "1"],
        ["root", "demo-stencil", "2"],
    ]
