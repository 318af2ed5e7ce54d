"""dlsym finds one of our names exactly where it would without us, whoever asks, armed and switched off.

An answer that is the driver's or a runtime's own function without us is ours while we are armed, or launches would not
be seen; RTLD_NEXT of a library behind us finds the driver itself (docs/explanation/limits.md)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from interposing import Build, Runner

from pyshim.start import plan

NAMES = ("cuInit", "cuLaunchKernel", "cudaLaunchKernel", "hipLaunchKernel", "cuNobodyHasThis")
OURS = Path(plan.LIBRARY).name
DRIVERS = ("libcuda.so.1", "libcudart.so.13", "libamdhip64.so.7")
HAVE = [plan.SIMULATED_DRIVER, str(Path(plan.SIMULATED_DRIVER).with_name(DRIVERS[1])), plan.SIMULATED_RUNTIME]
SWITCHES = pytest.mark.parametrize("switch", [{}, {"OVERLAP_RUN": "off"}], ids=["on", "off"])
Ask = Callable[..., "tuple[list[str], list[str]]"]


@pytest.fixture
def ask(build: Build, bare: Runner, preloaded: Runner, switch: dict[str, str]) -> Ask:
    """Ask all names without the library and with it: lines of answers, one for each who asks and name."""
    program = build("dlsym-answers", "dlsym_answers.c")
    paths = ":".join(str(Path(path).parent) for path in HAVE)

    def both(words: str = "", program: Path = program, preload: str = "{}") -> tuple[list[str], list[str]]:
        words += "".join(f" ask={name} by={name}" for name in NAMES)
        others = ":".join(other for other in preload.split(":") if other != "{}")
        env = {"LD_LIBRARY_PATH": paths}
        without = bare(words, program=program, env={**env, **({"LD_PRELOAD": others} if others else {})})
        done = preloaded(words, program=program, preload=preload, env={**env, **switch})
        assert (done.status, done.stderr) == (without.status, without.stderr) == (0, "")
        return without.stdout.splitlines(), done.stdout.splitlines()

    return both


def seen(line: str, *ways: str) -> str:
    """The same answers, but ours in place of drivers' for these ways of asking."""
    for way in ways:
        for driver in DRIVERS:
            line = line.replace(f"{way} {driver}", f"{way} {OURS}")
    return line


def other(build: Build, name: str = "libother.so") -> str:
    return str(build.library(name, "dlsym_answers.c", "-DDEFINES"))


def asker(build: Build, *link: str) -> str:
    name = f"libasker-{'-'.join(Path(path).name for path in link) or 'alone'}.so"
    return str(build.library(name, "dlsym_answers.c", "-DLIBRARY", link=["-Wl,--no-as-needed", *link]))


@SWITCHES
def test_where_nobody_has_a_name_there_is_none(ask: Ask) -> None:
    without, done = ask()
    assert all(line.count("nothing, error") == 3 for line in without)
    assert done == without


@SWITCHES
def test_a_driver_that_only_others_know_is_not_found(ask: Ask, build: Build) -> None:
    """Opened RTLD_LOCAL by the program, or needed by a plugin that is RTLD_LOCAL."""
    words = " ".join(f"local={path}" for path in (*HAVE, asker(build), asker(build, *HAVE)))
    without, done = ask(words)
    asked_by = {"program": [], "library": []}
    for line in without:
        asked_by[line.split(":")[0].rsplit(" ", 1)[1]].append(line)
    assert all("default nothing" in line for line in asked_by["program"])
    assert any("default libcuda.so.1" in line for line in asked_by["library"])
    on = done != without
    assert done == ([seen(line, "default") for line in without] if on else without)


@SWITCHES
@pytest.mark.parametrize("how", ["linked", "opened"])
def test_a_driver_that_everybody_knows_is_found(how: str, ask: Ask, build: Build, switch: dict[str, str]) -> None:
    words = f"local={asker(build)}"
    if how == "linked":
        linked = build("dlsym-answers-linked", "dlsym_answers.c", link=["-Wl,--no-as-needed", *HAVE])
        without, done = ask(words, linked)
    else:
        without, done = ask(" ".join([words, *(f"global={path}" for path in HAVE)]))
    assert any("default libcuda.so.1" in line for line in without)
    expected = []
    for line in without:
        ways = ["default", "everything"] + ["next"] * ("in the program" in line)
        expected.append(line if switch else seen(line, *ways))
    assert done == expected


@SWITCHES
@pytest.mark.parametrize("linked", [False, True])
def test_what_another_preload_before_ours_defines_is_found(linked: bool, ask: Ask, build: Build) -> None:
    more = {}
    if linked:
        more["program"] = build("dlsym-answers-linked", "dlsym_answers.c", link=["-Wl,--no-as-needed", *HAVE])
    without, done = ask(f"local={asker(build)} local={asker(build, *HAVE)}", preload=f"{other(build)}:{{}}", **more)
    assert all("default libother.so" in line for line in without if "Nobody" not in line)
    assert done == without


@SWITCHES
def test_what_another_preload_behind_ours_defines_is_found(ask: Ask, build: Build, switch: dict[str, str]) -> None:
    """Ours comes first where it is armed, and calls that one."""
    without, done = ask(f"local={asker(build)}", preload=f"{{}}:{other(build)}")
    assert all("default libother.so" in line for line in without if "Nobody" not in line)
    if switch:
        assert done == without
    else:
        assert [line.replace(OURS, "libother.so") for line in done] == without
