"""dlopen and dlmopen behave as if nobody stood in front of them: search paths and namespaces of the caller, errors,
threads, other overriders."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
from interposing import BLOCKS, ONE, Build, Runner, glibc, same

from pyshim.launch import plan

STRIP = f"deep_binding: strip\n{ONE}"
OLD = {"x86_64": "GLIBC_2.2.5", "aarch64": "GLIBC_2.17"}.get(platform.machine(), "GLIBC_2.2.5")
NODES = [
    OLD,
    pytest.param(
        "GLIBC_2.34",
        marks=pytest.mark.skipif(glibc() < (2, 34), reason="needs glibc 2.34, the first with this version of dlopen"),
    ),
]
MODES = {"lazy": "RTLD_LAZY", "deep": "(RTLD_NOW|RTLD_DEEPBIND)"}
SEARCH = "https://man7.org/linux/man-pages/man3/dlopen.3.html"
RUNPATH = "https://github.com/VirtualGL/virtualgl/issues/107"
CODE = f"ptx=k repeat=3 launch=k,{BLOCKS},256,0"


@pytest.fixture
def cases(build: Build) -> str:
    return str(build("opening", "opening.c"))


@pytest.fixture
def hidden(build: Build) -> Path:
    """A library in a folder that only a RUNPATH leads to."""
    return build.library("plugins/libhidden.so", "opened.c", "-DVALUE=7")


def outer(build: Build, name: str, *flags: str, path: str = "$ORIGIN/plugins", tag: str = "new") -> str:
    """A library that opens libhidden.so by its bare name."""
    search = f"-Wl,--{'enable' if tag == 'new' else 'disable'}-new-dtags,-rpath,{path}"
    return str(build.library(f"lib{name}.so", "opened.c", search, '-DINNER="libhidden.so"', *flags))


@pytest.mark.hazard(
    "loader",
    "a library that finds its plugins by its own RUNPATH no longer finds them, because a wrapper calls dlopen for it",
    source=RUNPATH,
)
@pytest.mark.parametrize("policy", [ONE, STRIP])
@pytest.mark.parametrize("mode", [*MODES])
@pytest.mark.parametrize("where", ["origin", "absolute", "rpath"])
def test_the_search_path_is_that_of_the_library_that_asks(
    where: str, mode: str, policy: str, cases: str, hidden: Path, build: Build, bare: Runner, preloaded: Runner
) -> None:
    path = str(hidden.parent) if where == "absolute" else "$ORIGIN/plugins"
    library = outer(
        build, f"{where}-{mode}", f"-DMODE={MODES[mode]}", path=path, tag="old" if where == "rpath" else "new"
    )
    words = ["n", library, "call", "inner", "n", "libhidden.so"]
    without = bare(words, program=cases)
    assert "inner 7\n" in without.stdout
    assert without.status == 0
    same(preloaded(words, policy, program=cases), without)


@pytest.mark.hazard(
    "loader", "a plugin that is opened from a constructor, inside of another dlopen, is not found, or the loader hangs"
)
@pytest.mark.parametrize("mode", [*MODES])
def test_a_constructor_opens_others(
    mode: str, cases: str, hidden: Path, build: Build, bare: Runner, preloaded: Runner
) -> None:
    assert hidden.exists()
    library = outer(build, f"early-{mode}", "-DEARLY", f"-DMODE={MODES[mode]}")
    needs = str(build("needs-early", "early_main_open.c", link=["-Wl,--no-as-needed", library]))
    for program, words in ((cases, ["nd", library, "call", "inner", "n", library]), (needs, [])):
        without = bare(words, program=program)
        assert "inner 7\n" in without.stdout
        for policy in (ONE, STRIP):
            same(preloaded(words, policy, program=program), without)


@pytest.mark.hazard(
    "loader",
    "what a library in a dlmopen namespace opens lands in the program's, or the other way round",
    source=SEARCH,
)
@pytest.mark.parametrize("way", ["nN", "nB", "nd", "ndN"])
def test_the_namespace_is_that_of_the_library_that_asks(
    way: str, cases: str, hidden: Path, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """RTLD_NOLOAD in the program's own namespace finds only what was opened there."""
    library = outer(build, "apart")
    words = [way, library, "call", "inner", "no", library, "no", str(hidden)]
    without = bare(words, program=cases)
    assert "inner 7\n" in without.stdout
    assert without.stdout.endswith("libhidden.so: no, no error, then none\n") is ("N" in way)
    for policy in (ONE, STRIP):
        same(preloaded(words, policy, program=cases), without)


@pytest.mark.parametrize("policy", [ONE, STRIP])
@pytest.mark.parametrize("way", ["n", "l", "ng", "nd", "no", "ndo", "nk", "d", "g", "nB", "nN", "N"])
def test_every_mode_answers_and_fails_alike(
    way: str, policy: str, cases: str, hidden: Path, bare: Runner, preloaded: Runner, tmp_path: Path
) -> None:
    """Found, missing, no library, the program itself, no name, neither lazy nor now; errno and dlerror."""
    text = tmp_path / "libtext.so"
    text.write_text("no library\n")
    paths = [str(hidden), "libmissing.so", "/nowhere/libmissing.so", str(text), str(tmp_path), "NULL", "", "libm.so.6"]
    words = [word for path in paths for word in (way, path)]
    same(preloaded(words, policy, program=cases), bare(words, program=cases))


@pytest.mark.hazard(
    "loader", "threads that open and close libraries at once hang in the loader or get different answers"
)
@pytest.mark.parametrize("policy", [ONE, STRIP])
def test_sixteen_threads_open_at_once(policy: str, cases: str, hidden: Path, bare: Runner, preloaded: Runner) -> None:
    words = ["threads", str(hidden)]
    without = bare(words, program=cases)
    assert without.stdout == "threads 16\n"
    same(preloaded(words, policy, program=cases), without)


@pytest.mark.parametrize("node", NODES)
def test_a_program_that_asks_for_dlopen_by_its_version_gets_one_that_works(
    node: str, cases: str, bare: Runner, preloaded: Runner
) -> None:
    without = bare(["version", node], program=cases)
    assert without.stdout == f"dlopen@{node} 1 1\n"
    same(preloaded(["version", node], program=cases), without)


@pytest.mark.hazard("loader", "a program from another distribution is bound to an old or a new version of dlopen")
@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("name", ["dlopen", "dlmopen"])
def test_a_program_that_was_linked_with_a_version_is_seen(
    name: str, node: str, build: Build, hidden: Path, bare: Runner, preloaded: Runner
) -> None:
    at = {"dlmopen": {"GLIBC_2.2.5": "GLIBC_2.3.4"}}.get(name, {}).get(node, node)
    flags = (f'-DVERSIONED="{name},{name}@{at}"', "-Wl,--no-gc-sections")
    program = build(f"versioned-{name}-{node}", "opening.c", *flags)
    plugin = build.library(
        "libopened-plugin-LINKED.so", "client.c", "-DWAY_LINKED", "-Dmain=plugin_main", link=[plan.SIMULATED_DRIVER]
    )
    words = ["ndB" if name == "dlmopen" else "nd", str(plugin), "run", "plugin_main", *CODE.split()]
    done = preloaded(words, STRIP, program=program)
    same(done, bare(words, program=program), but=("dynamic_shared",))
    assert done.totals["shaped"] == 3


@pytest.mark.hazard(
    "loader", "another tool overrides dlopen, too: one of the two is passed over, or both call each other"
)
@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("order", ["{other}:{{}}", "{{}}:{other}"])
def test_beside_another_overrider_both_are_asked(
    node: str, order: str, cases: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """What it does to the search path of others is its own affair; before us it finds us, by the version node."""
    other = build.library(f"libopen-overrider-{node}.so", "open_overrider.c", f'-DNODE="{node}"')
    plugin = build.library(
        "libopened-plugin-LINKED.so", "client.c", "-DWAY_LINKED", "-Dmain=plugin_main", link=[plan.SIMULATED_DRIVER]
    )
    words = ["nd", str(plugin), "run", "plugin_main", *CODE.split()]
    env = {"OVERRIDER_SAYS": "1"}
    without = bare(words, program=cases, env={**env, "LD_PRELOAD": str(other)})
    assert "overrider was asked" in without.stdout
    done = preloaded(words, ONE, program=cases, env=env, preload=order.format(other=other))
    assert (done.status, done.stdout, done.launches) == (without.status, without.stdout, without.launches)
    stripped = preloaded(words, STRIP, program=cases, env=env, preload=order.format(other=other))
    before = order.startswith("{other}")  # it hears the flag that we then take off
    assert stripped.stdout == (without.stdout if before else without.stdout.replace("overrider was asked\n", ""))
    assert stripped.totals["shaped"] == 3
