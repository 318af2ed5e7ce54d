"""dlsym behaves as if nobody stood in front of it: scopes, errors, order of start, other overriders."""

from __future__ import annotations

import platform

import pytest
from interposing import BLOCKS, Build, Runner, glibc, same

OLD_NODE = {"x86_64": ("GLIBC_2.2.5",), "aarch64": ("GLIBC_2.17",)}.get(platform.machine(), ())
NODES = [
    *OLD_NODE,
    pytest.param(
        "GLIBC_2.34",
        marks=pytest.mark.skipif(glibc() < (2, 34), reason="needs glibc 2.34, the first with this version of dlsym"),
    ),
]
WORDS = f"ptx=k repeat=3 launch=k,{BLOCKS},256,0"


@pytest.fixture
def cases(build: Build) -> str:
    return str(build("dlsym-cases", "dlsym_cases.c"))


def test_a_wrapper_that_asks_for_its_own_next_name_does_not_find_itself(
    cases: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    base = build.library("libbase.so", "dlsym_base.c")
    wrapper = build.library("libwrap.so", "dlsym_wrap.c", link=["-Wl,--no-as-needed", base])
    without = bare(["wrap", str(wrapper)], program=cases)
    assert without.stdout == "wrap 42 42\n"
    same(preloaded(["wrap", str(wrapper)], program=cases), without)


def test_a_library_opened_locally_sees_its_own_scope_by_rtld_default(
    cases: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    base = build.library("libbase.so", "dlsym_base.c")
    wrapper = build.library("libwrap.so", "dlsym_wrap.c", link=["-Wl,--no-as-needed", base])
    without = bare(["local", str(wrapper)], program=cases)
    assert without.stdout.endswith("default 42 42 -1\n")
    same(preloaded(["local", str(wrapper)], program=cases), without)


def test_names_that_only_look_like_ours_keep_their_handle(
    cases: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """cudnnCreate of two libraries, and a cuLaunchKernel that is no driver's."""
    libraries = [str(build.library(f"libcudnn{i}.so", "dlsym_base.c", f"-DVALUE={i}")) for i in (1, 2)]
    words = [word for library in libraries for word in ("handle", library)]
    without = bare(words, program=cases)
    assert without.stdout.startswith("handle 1 1\n")
    assert "handle 2 2\n" in without.stdout
    same(preloaded(words, program=cases), without)


@pytest.mark.parametrize("name", ["cuNobodyHasThis", "nobodyHasThis", "c", "cudaLaunchNothing", "__cudaNothing", "_"])
def test_errors_have_the_same_text_and_are_cleared(name: str, cases: str, bare: Runner, preloaded: Runner) -> None:
    without = bare(["error", name], program=cases)
    assert name in without.stdout
    same(preloaded(["error", name], program=cases), without)


def test_eight_threads_get_one_answer(cases: str, bare: Runner, preloaded: Runner) -> None:
    words = ["threads", "strlen", "threads", "cuNobodyHasThis"]
    same(preloaded(words, program=cases), bare(words, program=cases))


@pytest.mark.parametrize("node", NODES)
def test_a_program_that_asks_for_dlsym_by_its_version_gets_one_that_works(
    node: str, cases: str, bare: Runner, preloaded: Runner
) -> None:
    same(preloaded(["real", node], program=cases), bare(["real", node], program=cases))


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("order", ["{other}:{{}}", "{{}}:{other}"])
def test_beside_another_overrider_launches_are_seen(
    node: str, order: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """Before us it finds us, by the version node; after us we find it."""
    other = build.library(f"liboverrider-{node}.so", "overrider.c", f'-DNODE="{node}"', "-fno-builtin")
    env = {"OVERRIDER_SAYS": "1"}
    without = bare(WORDS, "dlsym", env={**env, "LD_PRELOAD": str(other)})
    assert "overrider was asked" in without.stdout
    done = preloaded(WORDS, way="dlsym", env=env, preload=order.format(other=other))
    same(done, without)
    assert done.totals["launches"] == 3


@pytest.mark.parametrize("count", [0, 16])
@pytest.mark.parametrize("way", ["DLSYM", "PROC2"])
def test_launches_from_a_constructor_before_ours_are_seen(
    count: int, way: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """A library that the program needs starts before preloaded ones; with 16 threads that race there."""
    library = build.library(
        f"libearly-{way}-{count}.so", "early.c", "-DLIBRARY", f"-DWAY_{way}", f"-DCOUNT={count}", "-DQUIET"
    )
    program = build(f"early-{way}-{count}", "early_main.c", link=[library])
    without = bare(program=program)
    assert f"launched early: {count or 1}\n" in without.stdout
    done = preloaded(program=program)
    same(done, without)
    assert done.totals["launches"] == (count or 1)


@pytest.mark.plain("no sanitizer has started by then", sanitized=True)
@pytest.mark.parametrize("way", ["DLSYM", "LINKED"])
def test_launches_from_preinit_are_made_but_not_counted(
    way: str, build: Build, bare: Runner, preloaded: Runner, simulated: dict[str, str]
) -> None:
    link = [f"{simulated['LD_LIBRARY_PATH'].split(':')[0]}/libcuda.so.1"] if way == "LINKED" else []
    program = build(f"preinit-{way}", "early.c", "-DPREINIT", f"-DWAY_{way}", "-DCOUNT=0", link=link)
    without = bare(program=program)
    if without.status < 0 and glibc() < (2, 34):
        pytest.skip("needs glibc 2.34: before, libpthread is not ready yet, and the simulated driver cannot start")
    assert "launched early: 1\n" in without.stdout
    done = preloaded(program=program)
    same(done, without)
    # There is no environment yet, so they cannot be counted; but it is not kept quiet that there was a GPU. A program
    # that calls dlopen there loses its environment for good (glibc), and our settings with it.
    assert [process["opened_gpu"] for process in done.report["processes"]] == ([True] if way == "LINKED" else [])


@pytest.mark.parametrize("way", ["symbol", "dlsym", "proc_address_v2"])
def test_bound_at_start(way: str, bare: Runner, preloaded: Runner) -> None:
    env = {"LD_BIND_NOW": "1"}
    done = preloaded(WORDS, way=way, env=env)
    same(done, bare(WORDS, way, env=env))
    assert done.totals["launches"] == 3


@pytest.mark.parametrize("start", ["vfork", "spawn", "exec"])
@pytest.mark.parametrize("way", ["symbol", "dlsym"])
def test_programs_that_start_programs(start: str, way: str, bare: Runner, preloaded: Runner) -> None:
    words = f"{WORDS} {start} {WORDS}"
    done = preloaded(words, way=way)
    same(done, bare(words, way))
    assert sorted(process["launches"] for process in done.report["processes"]) == [3, 3]


def test_startup_and_lookups_open_no_file(cases: str, preloaded: Runner, tmp_path: object) -> None:
    """A process that never comes near a driver leaves nothing behind."""
    done = preloaded(["error", "cuNobodyHasThis"], program=cases)
    assert done.report["processes"] == []
