"""dlopen and dlmopen behave as without the library: search paths and namespaces of the caller, errors, threads, other
overriders. Only dlmopen is hooked."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
from interposing import BLOCKS, ONE, Build, Runner, glibc, same

from pyshim.launch import plan

pytestmark = pytest.mark.plain(
    "sanitizers call dlopen in place of its caller, and refuse RTLD_DEEPBIND", sanitized=True
)
OLD = {"x86_64": "GLIBC_2.2.5", "aarch64": "GLIBC_2.17"}.get(platform.machine(), "GLIBC_2.2.5")
NODES = [
    OLD,
    pytest.param(
        "GLIBC_2.34",
        marks=pytest.mark.skipif(glibc() < (2, 34), reason="needs glibc 2.34, the first with this version of dlmopen"),
    ),
]
# How a library opens another one: flags of its build.
MODES = {
    "lazy": ["-DMODE=RTLD_LAZY"],
    "deep": ["-DMODE=(RTLD_NOW|RTLD_DEEPBIND)"],
    "dlmopen": ["-DOPEN(path,mode)=dlmopen(LM_ID_BASE,path,mode)"],
}
CODE = f"ptx=k repeat=3 launch=k,{BLOCKS},256,0".split()


def plugin(build: Build) -> Path:
    """A client of the driver, for programs that open it."""
    return build.library(
        "libopened-plugin-LINKED.so", "client.c", "-DWAY_LINKED", "-Dmain=plugin_main", link=[plan.SIMULATED_DRIVER]
    )


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


@pytest.mark.parametrize("mode", [*MODES])
@pytest.mark.parametrize("where", ["origin", "absolute", "rpath"])
def test_the_search_path_is_that_of_the_library_that_asks(
    where: str, mode: str, cases: str, hidden: Path, build: Build, bare: Runner, preloaded: Runner
) -> None:
    path = str(hidden.parent) if where == "absolute" else "$ORIGIN/plugins"
    library = outer(build, f"{where}-{mode}", *MODES[mode], path=path, tag="old" if where == "rpath" else "new")
    for way in ("n", "nB"):  # the library's call is the first of dlmopen, or a later one
        words = [way, library, "call", "inner", "n", "libhidden.so"]
        without = bare(words, program=cases)
        assert "inner 7\n" in without.stdout
        assert without.status == 0
        same(preloaded(words, ONE, program=cases), without)


@pytest.mark.parametrize("mode", [*MODES])
def test_a_constructor_opens_others(
    mode: str, cases: str, hidden: Path, build: Build, bare: Runner, preloaded: Runner
) -> None:
    assert hidden.exists()
    library = outer(build, f"early-{mode}", "-DEARLY", *MODES[mode])
    needs = str(build(f"needs-early-{mode}", "early_main_open.c", link=["-Wl,--no-as-needed", library]))
    for program, words in ((cases, ["nd", library, "call", "inner", "n", library]), (needs, [])):
        without = bare(words, program=program)
        assert "inner 7\n" in without.stdout
        same(preloaded(words, ONE, program=program), without)


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
    same(preloaded(words, ONE, program=cases), without)


@pytest.mark.parametrize("way", ["n", "l", "ng", "nd", "no", "ndo", "nk", "d", "g", "nB", "nN", "N"])
def test_every_mode_answers_and_fails_alike(
    way: str, cases: str, hidden: Path, bare: Runner, preloaded: Runner, tmp_path: Path
) -> None:
    """Found, missing, no library, the program itself, no name, neither lazy nor now; errno and dlerror."""
    text = tmp_path / "libtext.so"
    text.write_text("no library\n")
    paths = [str(hidden), "libmissing.so", "/nowhere/libmissing.so", str(text), str(tmp_path), "NULL", "", "libm.so.6"]
    words = [word for path in paths for word in (way, path)]
    same(preloaded(words, ONE, program=cases), bare(words, program=cases))


def test_sixteen_threads_open_at_once(cases: str, hidden: Path, bare: Runner, preloaded: Runner) -> None:
    words = ["threads", str(hidden)]
    without = bare(words, program=cases)
    assert without.stdout == "threads 16\n"
    same(preloaded(words, ONE, program=cases), without)


@pytest.mark.parametrize("node", NODES)
def test_a_program_that_was_linked_with_a_version_is_seen(
    node: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    at = {"GLIBC_2.2.5": "GLIBC_2.3.4"}.get(node, node)
    program = build(f"versioned-{node}", "opening.c", f'-DVERSIONED="dlmopen,dlmopen@{at}"', "-Wl,--no-gc-sections")
    words = ["nN", str(build.library("libother0.so", "opened.c")), "n", str(plugin(build)), "run", "plugin_main", *CODE]
    done = preloaded(words, ONE, program=program)
    same(done, bare(words, program=program), but=("dynamic_shared",))
    (process,) = done.report["processes"]
    assert process["opened_apart"] == {"times": 1, "names": ("libother0.so",)}


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("order", ["{other}:{{}}", "{{}}:{other}"])
def test_another_tool_that_overrides_dlopen_finds_the_c_librarys(
    node: str, order: str, cases: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    other = build.library(f"libopen-overrider-{node}.so", "open_overrider.c", f'-DNODE="{node}"')
    words = ["n", str(plugin(build)), "run", "plugin_main", *CODE]
    env = {"OVERRIDER_SAYS": "1"}
    without = bare(words, program=cases, env={**env, "LD_PRELOAD": str(other)})
    assert "overrider was asked" in without.stdout
    done = preloaded(words, ONE, program=cases, env=env, preload=order.format(other=other))
    same(done, without, but=("dynamic_shared",))
    assert done.totals["shaped"] == 3
