"""Libraries opened with RTLD_DEEPBIND, or by dlmopen, are bound past what is preloaded: counted, said, and seen after
all where the policy strips the flag."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from interposing import BLOCKS, ONE, Build, Done, Runner, same

from pyshim.launch import plan

STRIP = f"deep_binding: strip\n{ONE}"
CODE = f"ptx=k repeat=3 launch=k,{BLOCKS},256,0 ex=k,{BLOCKS},256,0".split()
DEEPBIND = "https://man7.org/linux/man-pages/man3/dlopen.3.html"
PLUGIN = "libopened-plugin-{}.so"


def plugin(build: Build, way: str = "LINKED") -> Path:
    link = [plan.SIMULATED_DRIVER] if way == "LINKED" else []
    return build.library(PLUGIN.format(way), "client.c", f"-DWAY_{way}", "-Dmain=plugin_main", link=link)


@pytest.fixture
def host(build: Build) -> Path:
    return build("opening", "opening.c")


@pytest.fixture
def warned(overlap: Any, tmp_path: Path) -> Callable[[Path], tuple[str, str]]:
    """What `overlap report` warns of, and what it notes."""

    def read(pages: Path) -> tuple[str, str]:
        answer = json.loads(overlap("report", str(pages), "--json").stdout)
        return "\n".join(answer["findings"]), "\n".join(answer["remarks"])

    return read


def opened(done: Done) -> dict[str, Any]:
    """How often, and the names, by what was asked for."""
    (process,) = done.report["processes"]
    every = {name: process[f"opened_{name}"] for name in ("deep", "stripped", "apart")}
    return {name: (one["times"], *one["names"]) for name, one in every.items() if one["times"]}


@pytest.mark.hazard(
    "loader",
    "a plugin opened with RTLD_DEEPBIND goes past every preloaded library: its launches are not seen",
    source=DEEPBIND,
)
@pytest.mark.parametrize("way", ["LINKED", "DLSYM", "PROC2"])
def test_launches_behind_rtld_deepbind_are_not_seen_and_that_is_said(
    way: str, host: Path, build: Build, bare: Runner, preloaded: Runner, tmp_path: Path, warned: Any
) -> None:
    words = ["gpu", "-", "nd", str(plugin(build, way)), "run", "plugin_main", *CODE]
    pages = tmp_path / "pages"
    pages.mkdir()
    without, done = bare(words, program=host), preloaded(words, ONE, program=host, report=pages, env={"RANK": "0"})
    assert len(without.launches) == 4
    assert (done.stdout, done.launches) == (without.stdout, without.launches)
    name = PLUGIN.format(way)
    assert done.totals["launches"] == 0
    assert opened(done) == {"deep": (1, name)}
    assert (
        f"no kernel launch was seen: it launched none, or it did so from {name}, opened with RTLD_DEEPBIND"
        in done.stderr
    )
    findings, _ = warned(pages)
    assert f"most likely from {name}, opened with RTLD_DEEPBIND" in findings
    assert re.search(rf"asked for {name} \(1 x\) with RTLD_DEEPBIND.*`deep_binding: strip`", findings)


@pytest.mark.hazard(
    "loader", "a policy that strips RTLD_DEEPBIND sees and shapes such a plugin, whose results stay", source=DEEPBIND
)
@pytest.mark.parametrize("way", ["LINKED", "DLSYM", "PROC2"])
def test_without_the_flag_they_are_seen_and_shaped(
    way: str, host: Path, build: Build, bare: Runner, preloaded: Runner, tmp_path: Path, warned: Any
) -> None:
    words = ["nd", str(plugin(build, way)), "run", "plugin_main", *CODE]
    pages = tmp_path / "pages"
    pages.mkdir()
    done = preloaded(words, STRIP, program=host, report=pages)
    same(done, bare(words, program=host), but=("dynamic_shared",))
    assert done.totals["shaped"] == done.totals["launches"] == 4
    assert min(done.sizes) > 0
    assert opened(done) == {"stripped": (1, PLUGIN.format(way))}
    findings, remarks = warned(pages)
    assert "DEEPBIND" not in findings
    assert f"{PLUGIN.format(way)} (1 x) opened without RTLD_DEEPBIND" in remarks


@pytest.mark.hazard("loader", "a plugin in a dlmopen namespace has a C library of its own: its launches are not seen")
@pytest.mark.parametrize("policy", [ONE, STRIP])
def test_launches_in_another_namespace_are_not_seen_and_that_is_said(
    policy: str, host: Path, build: Build, bare: Runner, preloaded: Runner, tmp_path: Path, warned: Any
) -> None:
    words = ["gpu", "-", "nN", str(plugin(build)), "run", "plugin_main", *CODE]
    pages = tmp_path / "pages"
    pages.mkdir()
    without, done = bare(words, program=host), preloaded(words, policy, program=host, report=pages, env={"RANK": "0"})
    name = PLUGIN.format("LINKED")
    assert f"nN {name}: open" in without.stdout
    assert (done.status, done.stdout, done.launches) == (without.status, without.stdout, without.launches)
    assert (done.totals["launches"], opened(done)) == (0, {"apart": (1, name)})
    assert f"from {name}, opened by dlmopen, where nothing is preloaded" in done.stderr
    findings, _ = warned(pages)
    assert f"most likely from {name}, opened by dlmopen" in findings
    assert f"asked for {name} (1 x) by dlmopen, in another namespace" in findings


def test_dlmopen_for_the_programs_own_namespace_is_dlopen(
    host: Path, build: Build, bare: Runner, preloaded: Runner
) -> None:
    words = ["ndB", str(plugin(build)), "run", "plugin_main", *CODE]
    done = preloaded(words, STRIP, program=host)
    same(done, bare(words, program=host), but=("dynamic_shared",))
    assert (done.totals["shaped"], opened(done)) == (4, {"stripped": (1, PLUGIN.format("LINKED"))})


def test_what_a_library_seen_before_launches_is_still_seen(
    host: Path, build: Build, bare: Runner, preloaded: Runner, tmp_path: Path, warned: Any
) -> None:
    """Another one was opened past us: a warning, no claim that nothing was seen. Names are told once, of five four."""
    others = [str(build.library(f"libother{i}.so", "opened.c")) for i in range(5)]
    words = [word for other in [*others, others[0]] for word in ("ld", other)]
    words += ["n", str(plugin(build)), "run", "plugin_main", *CODE]
    pages = tmp_path / "pages"
    pages.mkdir()
    done = preloaded(words, program=host, report=pages)
    same(done, bare(words, program=host))
    assert done.totals["launches"] == 4
    assert opened(done) == {"deep": (6, *(f"libother{i}.so" for i in range(4)))}
    findings, _ = warned(pages)
    assert "libother0.so, libother1.so, libother2.so and libother3.so (6 x)" in findings
    assert "no launch was seen" not in findings


def test_nothing_is_stripped_or_counted_where_the_library_is_off(
    host: Path, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """`value` of the program's own scope, or of the library's own: the flag decides."""
    first, second = (build.library(f"libvalue{i}.so", "opened.c", f"-DVALUE={i}") for i in (1, 2))
    words = ["ng", str(first), "nd", str(build.library("libasks.so", "asks.c", link=[second])), "call", "asked"]
    without = bare(words, program=host)
    assert without.stdout.endswith("asked 2\n")
    for policy, env, answer in (
        (ONE, {}, 2),
        (STRIP, {}, 1),
        (STRIP, {"OVERLAP_RUN": "off"}, 2),
        (STRIP, {"OVERLAP_TABLE": "broken"}, 2),
    ):
        done = preloaded(words, policy, program=host, env=env)
        assert done.stdout == without.stdout.replace("asked 2", f"asked {answer}"), (policy, env)
        assert (done.status, done.stderr, done.report["processes"]) == (without.status, without.stderr, [])


def test_one_policy_of_several_that_strips_is_enough(
    host: Path, build: Build, preloaded: Runner, table_of: Any, clean_environment: Any, tmp_path: Path
) -> None:
    """The GPU is not known when a library is opened."""
    named = {"a40": "keep", "h100": "strip", "a100": "keep"}
    files = []
    for gpu, way in named.items():
        files.append(tmp_path / f"{gpu}.yaml")
        files[-1].write_text(f'policy: 1\nname: {gpu}\ngpu: ["NVIDIA {gpu.upper()}*"]\ndeep_binding: {way}\n')
    table = plan.make(plan.Request(policy=",".join(map(str, files))), clean_environment).settings.table
    words = ["nd", str(plugin(build)), "run", "plugin_main", *CODE]
    for text, seen in ((table, 4), (table_of("h100")["OVERLAP_TABLE"], 0)):
        done = preloaded(words, program=host, env={"OVERLAP_TABLE": text})
        assert sum(process["launches"] for process in done.report["processes"]) == seen


@pytest.mark.hazard(
    "loader",
    "Python programs that set RTLD_DEEPBIND for their extensions (sys.setdlopenflags, ctypes) launch unseen",
    source="https://docs.python.org/3/library/sys.html#sys.setdlopenflags",
)
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
    for policy, seen, counted in ((ONE, 0, "deep"), (STRIP, 3, "stripped")):
        done = preloaded(words, policy, program=sys.executable)
        same(done, without, but=("dynamic_shared",) if seen else ())
        assert sum(process["launches"] for process in done.report["processes"]) == seen
        if seen:
            assert opened(done) == {counted: (1, "overlapping_plugin.so")}


def test_a_forked_child_says_what_its_parent_had_opened(build: Build, host: Path, preloaded: Runner) -> None:
    """What is opened there stays out of sight there, too."""
    done = preloaded(
        ["ld", str(build.library("libother0.so", "opened.c")), "fork", str(plugin(build)), *CODE], program=host
    )
    (process,) = done.report["processes"]
    assert process["forked"] and process["launches"] == 4
    assert process["opened_deep"] == {"times": 1, "names": ("libother0.so",)}
