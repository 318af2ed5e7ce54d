"""Launches of libraries opened with RTLD_DEEPBIND, or by dlmopen in another namespace, are not seen.

The program runs as without the library. Where a process opened a GPU and no launch was seen, the report names
RTLD_DEEPBIND as a possible cause."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from interposing import BLOCKS, ONE, Build, Runner, same

from pyshim.start import plan

pytestmark = pytest.mark.plain("sanitizers refuse RTLD_DEEPBIND", sanitized=True)
CODE = f"ptx=k repeat=3 launch=k,{BLOCKS},256,0 ex=k,{BLOCKS},256,0".split()
PLUGIN = "libopened-plugin-{}.so"


def plugin(build: Build, way: str = "LINKED") -> Path:
    link = [plan.SIMULATED_DRIVER] if way == "LINKED" else []
    return build.library(PLUGIN.format(way), "client.c", f"-DWAY_{way}", "-Dmain=plugin_main", link=link)


@pytest.fixture
def host(build: Build) -> Path:
    return build("opening", "opening.c")


@pytest.fixture
def findings(overlap: Any) -> Callable[[Path], str]:
    """What `overlap report` warns of."""
    return lambda pages: "\n".join(json.loads(overlap("report", str(pages), "--json").stdout)["findings"])


@pytest.mark.parametrize("way", ["LINKED", "DLSYM", "PROC2"])
def test_where_launches_are_behind_rtld_deepbind_the_flag_is_named_as_a_possible_cause(
    way: str, host: Path, build: Build, bare: Runner, preloaded: Runner, tmp_path: Path, findings: Any
) -> None:
    words = ["gpu", "-", "nd", str(plugin(build, way)), "run", "plugin_main", *CODE]
    pages = tmp_path / "pages"
    pages.mkdir()
    without, done = bare(words, program=host), preloaded(words, ONE, program=host, report=pages, env={"RANK": "0"})
    assert len(without.launches) == 4
    assert (done.stdout, done.launches) == (without.stdout, without.launches)
    assert done.totals["launches"] == 0
    assert "no kernel launch was seen: it launched none, or" in done.stderr
    assert "from a library opened with RTLD_DEEPBIND, for example" in done.stderr
    assert "from a library opened with RTLD_DEEPBIND, for example" in findings(pages)


@pytest.mark.parametrize("how", ["ctypes", "setdlopenflags"])
def test_python_opens_its_libraries_with_the_flag(
    how: str, build: Build, bare: Runner, preloaded: Runner, tmp_path: Path
) -> None:
    module = build.library("overlapping_plugin.so", "deep_module.c", link=[plan.SIMULATED_DRIVER])
    script = tmp_path / "script.py"
    script.write_text(
        f"""\
import ctypes, os, sys
PATH = {str(module)!r}
if sys.argv[1] == "ctypes":
    library = ctypes.CDLL(PATH, mode=os.RTLD_NOW | os.RTLD_DEEPBIND)
else:
    sys.setdlopenflags(os.RTLD_NOW | os.RTLD_DEEPBIND)
    sys.path.insert(0, os.path.dirname(PATH))
    try:
        import overlapping_plugin
    except SystemError:
        pass
    library = ctypes.CDLL(PATH, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
print("launched", library.launches(3))
"""
    )
    words = [str(script), how]
    without = bare(words, program=sys.executable)
    assert without.stdout == "launched 3\n", without.stderr
    done = preloaded(words, ONE, program=sys.executable)
    same(done, without)
    assert sum(process["launches"] for process in done.report["processes"]) == 0
