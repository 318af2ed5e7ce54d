"""A site's TaskProlog and containers that a SPANK plugin enters, as pyxis does (fake_pyxis.c), on a real cluster."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import cluster as slurm
import debian
import pytest
from containers import WORDS, copied, launches

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def cluster(
    site: Path, outside: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[slurm.Cluster]:
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount")
    plugin = tmp_path_factory.mktemp("spank") / "fake_pyxis.so"
    try:
        debian.install(["libslurm-dev"], ["/usr/include/slurm/spank.h"])
        flags = ["-D_GNU_SOURCE", "-I/usr/include", "-fPIC", "-shared", "-Wall", "-Werror"]
        subprocess.run(["cc", *flags, str(HERE / "fake_pyxis.c"), "-o", str(plugin)], check=True)
        started = slurm.start(
            outside, nodes=1, plugstack=f"required {plugin}\n", more=f"TaskProlog={site}/libexec/task-prolog\n"
        )
    except debian.Missing as missing:
        pytest.skip(str(missing))
    yield started
    started.stop()


@pytest.fixture
def container(site: Path, image: Path, report: Path, tmp_path: Path) -> dict[str, str]:
    folder = copied(image, tmp_path / "image")
    (folder / str(site)[1:]).mkdir(parents=True, exist_ok=True)
    return {
        "CONTAINER_IMAGE": str(folder),
        "CONTAINER_REPORT": str(report),
        "OVERLAP_REPORT": "/report",
        "PATH": "/bin",
    }


def test_with_the_folder_mounted_the_task_prolog_works_in_the_container(cluster, container, site, report):
    done = cluster.srun("/bin/client", *WORDS.split(), env={**container, "CONTAINER_MOUNTS": str(site)})
    assert done.returncode == 0
    assert re.fullmatch(
        r"overlap: (without child processes: )?.* raise no stream .* 3 launches\).* next: overlap report /report\n",
        done.stderr,
    )
    assert launches(report) == [3]


def test_without_it_the_task_fails_as_the_readme_says(cluster, container, report):
    done = cluster.srun("/bin/client", *WORDS.split(), env=container)
    assert done.returncode != 0
    assert launches(report) == []
