"""The runtime's names lead to the runtime that the caller would have got without us, whoever has defined it."""

from __future__ import annotations

from pathlib import Path

import pytest
from interposing import Build, Runner, same


def runtime(build: Build, name: str, answer: int, node: str = "") -> Path:
    """A runtime that answers so; node: the version of its symbols."""
    flags = [f"-DANSWER={answer}"]
    if node:
        script = build.folder / f"{name.replace('/', '_')}.map"
        script.write_text(f"{node} {{ global: *; }};\n")
        flags.append(f"-Wl,--version-script={script}")
    return build.library(name, "scope_runtime.c", *flags)


def host(build: Build) -> Path:
    return build("scope-host", "scope_host.c")


def test_a_library_beside_the_caller_has_the_runtime_in_it(build: Build, bare: Runner, preloaded: Runner) -> None:
    """As in TensorFlow: one library of a plugin carries the runtime, another one launches, and all are RTLD_LOCAL."""
    carrier = runtime(build, "libcarrier.so", 42)
    caller = build.library("libbeside.so", "scope_caller.c", link=[carrier])
    words = f"local={caller} call=0 call=0"
    without = bare(words, program=host(build))
    assert without.stdout == "opened: yes\nlaunch: 42\nlaunch: 42\n"
    same(preloaded(words, program=host(build)), without)


def test_a_library_beside_the_caller_has_a_driver_in_it(build: Build, bare: Runner, preloaded: Runner) -> None:
    """Likewise: a stub that opens the driver when it is first used."""
    carrier = build.library("libstub.so", "scope_runtime.c", "-DDRIVER", "-DANSWER=42")
    caller = build.library("libbesidestub.so", "scope_caller.c", "-DDRIVER", link=[carrier])
    words = f"local={caller} call=0 call=0"
    without = bare(words, program=host(build))
    assert without.stdout == "opened: yes\nlaunch: 42\nlaunch: 42\n"
    same(preloaded(words, program=host(build)), without)


def test_the_runtime_under_another_file_name(build: Build, bare: Runner, preloaded: Runner) -> None:
    """The loader goes by its SONAME."""
    made = runtime(build, "soname/libcudart.so.12", 42, "libcudart.so.12")
    caller = build.library("libsoname.so", "scope_caller.c", link=[made])
    renamed = made.parent / "other-name.so"
    made.rename(renamed)
    words = f"local={renamed} local={caller} call=1"
    without = bare(words, program=host(build))
    assert without.stdout.endswith("launch: 42\n")
    same(preloaded(words, program=host(build)), without)


@pytest.mark.parametrize("versions", [False, True])
def test_another_preloaded_library_behind_ours_is_still_called(
    versions: bool, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """A profiler, say: the loader binds to the first definition, versions or not."""
    made = runtime(build, f"behind{versions}/libcudart.so.12", 42, "libcudart.so.12" if versions else "")
    caller = build.library(f"libbehind{versions}.so", "scope_caller.c", link=[made])
    other = runtime(build, "libprofiler.so", 43)
    words = f"local={caller} call=0"
    env = {"LD_LIBRARY_PATH": str(made.parent)}
    without = bare(words, program=host(build), env={**env, "LD_PRELOAD": str(other)})
    assert without.stdout == "opened: yes\nlaunch: 43\n"
    same(preloaded(words, program=host(build), preload=f"{{}}:{other}", env=env), without)


@pytest.mark.parametrize("kept", [12, 13])
def test_a_library_that_takes_the_place_of_another(kept: int, build: Build, bare: Runner, preloaded: Runner) -> None:
    """A plugin is closed, and another one with another runtime is mapped at its address. Kept is a runtime that stays:
    the old one, which must not be called any more, or the new one, while the old one is unmapped."""
    runtimes = {n: runtime(build, f"place{n}/libcudart.so.{n}", n, f"libcudart.so.{n}") for n in (12, 13)}
    first, second = (build.library(f"libplace{n}.so", "scope_caller.c", link=[runtimes[n]]) for n in (12, 13))
    env = {"LD_LIBRARY_PATH": ":".join(str(made.parent) for made in runtimes.values())}
    words = f"local={runtimes[kept]} local={first} call=1 close=1 local={second} call=2"
    without = bare(words, program=host(build), env=env)
    assert [line for line in without.stdout.splitlines() if "launch" in line] == ["launch: 12", "launch: 13"]
    same(preloaded(words, program=host(build), env=env), without)


def test_whoever_asks_for_the_default_gets_the_runtime_of_his_own_scope(
    build: Build, bare: Runner, preloaded: Runner
) -> None:
    """Two plugins, each with a runtime that only itself knows, which ask dlsym(RTLD_DEFAULT)."""
    runtimes = {n: runtime(build, f"own{n}/libcudart.so.{n}", n, f"libcudart.so.{n}") for n in (12, 13)}
    callers = [
        build.library(f"libown{n}.so", "scope_caller.c", "-DASKS", "-Wl,--no-as-needed", link=[made])
        for n, made in runtimes.items()
    ]
    env = {"LD_LIBRARY_PATH": ":".join(str(made.parent) for made in runtimes.values())}
    words = f"local={callers[0]} local={callers[1]} call=0 call=1"
    without = bare(words, program=host(build), env=env)
    assert without.stdout.endswith("launch: 12\nlaunch: 13\n")
    same(preloaded(words, program=host(build), env=env), without)


def test_no_error_is_left_behind(build: Build, bare: Runner, preloaded: Runner) -> None:
    caller = build.library("libitself.so", "scope_caller.c", "-DANSWER=7")
    words = f"local={caller} call=0 error"
    without = bare(words, program=host(build))
    assert without.stdout.endswith("launch: 7\nerror: none\n")
    same(preloaded(words, program=host(build)), without)


@pytest.mark.plain("a sanitizer takes more than that stack", sanitized=True)
def test_a_signal_handler_on_a_small_stack(build: Build, bare: Runner, preloaded: Runner) -> None:
    made = runtime(build, "libalternateruntime.so", 42)
    caller = build.library("libalternate.so", "alternate.c", "-D_GNU_SOURCE", link=[made])
    words = f"local={caller} call=0"
    without = bare(words, program=host(build))
    assert without.stdout == "opened: yes\nlaunch: 42\n"
    same(preloaded(words, program=host(build), env={"OVERLAP_RUN": "off"}), without)
