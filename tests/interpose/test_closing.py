"""Libraries that launch while the loader is at work: in their constructors and destructors, armed or not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from interposing import ONE, Build, Done, Runner, same

from pyshim.start import plan

STATES = ["armed", "off", "not set up"]
NAMES = {
    "CUDA": ("", "libcudart.so"),
    "driver": ("-DDRIVER", "libcuda.so"),
    "wrapper": ("-DDRIVER", "libtracer.so"),  # of the driver, of one plugin's own
    "HIP": ("-DHIP", "libamdhip64.so"),
}
SEVERAL = "overlap: there are several HIP runtimes in this process: launches on all but the first are not seen\n"
API = pytest.mark.parametrize("api", NAMES)
STATE = pytest.mark.parametrize("state", STATES)


class Scope:
    """Plugins of one host program, each bound to a runtime of its own, whose calls answer with the runtime's number."""

    def __init__(self, build: Build, api: str, state: str = "") -> None:
        if (api, state) == ("driver", "armed"):
            pytest.skip("NVIDIA's driver is one file to a process, and what is armed knows one")
        self.build, self.api = build, api
        self.flag, self.name = NAMES[api]
        self.folder = f"closing-{api}"

    def runtime(self, number: int) -> Path:
        name = f"{self.folder}/{number}/{self.name}.{number}"
        script = self.build.folder / f"{self.folder}-{number}.map"
        script.write_text(f"{self.name}.{number} {{ global: *; }};\n")
        flags = [flag for flag in (self.flag, f"-DANSWER={number}", f"-Wl,--version-script={script}") if flag]
        return self.build.library(name, "scope_runtime.c", *flags)

    def plugin(self, number: int, *what: str) -> Path:
        name = f"{self.folder}/libplugin{number}{''.join(what).replace('-D', '').lower()}.so"
        flags = [flag for flag in (self.flag, *what) if flag]
        return self.build.library(name, "scope_caller.c", *flags, link=[self.runtime(number)])

    @property
    def env(self) -> dict[str, str]:
        folders = [*(self.runtime(number).parent for number in (6, 7)), self.build.folder / "stub"]
        return {"LD_LIBRARY_PATH": ":".join(map(str, folders))}

    def compare(self, words: str, state: str, bare: Runner, preloaded: Runner, program: Path | None = None) -> Done:
        """The program with the library against without it. Returns what it was like without."""
        program = program or self.build("scope-host", "scope_host.c")
        without = bare(words, program=program, env=self.env, timeout=300)
        assert without.status == 0, without.stderr
        more: Mapping[str, str] = {"off": {"OVERLAP_RUN": "off"}, "not set up": {"OVERLAP_TABLE": ""}}.get(state, {})
        if state == "not set up":
            done = bare(words, program=program, env={**self.env, "LD_PRELOAD": plan.LIBRARY}, timeout=300)
        else:
            done = preloaded(words, ONE, program=program, env={**self.env, **more}, timeout=300)
        done.stderr = done.stderr.replace(SEVERAL, "")
        same(done, without)
        return without


ENDS = {"first": (7, "-DENDS"), "second": (6, "-DENDS")}
BEGINS = {"begins": (7, "-DBEGINS"), "other": (6,)}
# The plugins, the words, and what is answered, also to a destructor (e) or a constructor (b). Whether the library is
# set up by then as it is asked for.
CASES: dict[str, tuple[dict[str, tuple[Any, ...]], str, str, bool]] = {
    "a destructor launches, and another plugin takes its place": (
        ENDS,
        "local={first} call=0 close=0 local={second} call=1 close=1 local={first} call=2",
        "7 e7 6 e6 7 e7",
        True,
    ),
    "a destructor makes the first launch": (ENDS, "local={first} close=0 local={second} call=1", "e7 6 e6", True),
    # Both runtimes stay mapped, so that a wrong answer is no crash.
    "a runtime that stays is called by the plugin that is bound to it": (
        ENDS,
        "local={runtime7} local={runtime6} local={first} call=2 close=2 local={second} call=3 close=3 "
        "local={first} call=4",
        "7 e7 6 e6 7 e7",
        True,
    ),
    # The loader holds its lock over a constructor.
    "a constructor waits for a thread that launches, as the first call": (BEGINS, "local={begins}", "b7", False),
    "a constructor waits, after another plugin": (BEGINS, "local={other} call=0 local={begins}", "6 b7", True),
    "a constructor waits, after one that was closed": (
        BEGINS,
        "local={other} call=0 close=0 local={begins}",
        "6 b7",
        True,
    ),
    "an unrelated library is closed between launches": (
        {"plugin": (7,)},
        "local={plugin} call=0" + "".join(f" local={{unrelated}} close={i} call=0" for i in range(1, 8)),
        " ".join("7" * 8),
        False,
    ),
}


@API
@STATE
@pytest.mark.parametrize("case", CASES)
def test_plugins_come_and_go(case: str, state: str, api: str, build: Build, bare: Runner, preloaded: Runner) -> None:
    plugins, words, wanted, armed = CASES[case]
    scope = Scope(build, api, state if armed else "")
    paths = {name: scope.plugin(number, *flags) for name, (number, *flags) in plugins.items()}
    unrelated = build.library("libunrelated.so", "scope_caller.c", "-DANSWER=1")
    words = words.format(**paths, runtime7=scope.runtime(7), runtime6=scope.runtime(6), unrelated=unrelated)
    without = scope.compare(words, state, bare, preloaded)
    answers = re.findall(r"^(launch|ended|began): (\d+)$", without.stdout, re.M)
    assert " ".join(f"{who[0].replace('l', '')}{answer}" for who, answer in answers) == wanted


def test_a_wrapper_of_the_driver_is_closed(
    build: Build, bare: Runner, preloaded: Runner, simulated: dict[str, str]
) -> None:
    """After more functions of the driver than objects may be due to be pinned."""
    driver = f"{simulated['LD_LIBRARY_PATH'].split(':')[0]}/libcuda.so.1"
    wrapper = build.library("libwrapper.so", "wrapped.c", "-DWRAPPER")
    plugin = build.library("libwrapped.so", "wrapped.c", "-DPLUGIN", link=[str(wrapper)])
    user = build.library("libuser.so", "wrapped.c", "-DUSER", link=[driver])
    words = [str(user), str(plugin)]
    without = bare(words, program=build("wrapped", "wrapped.c"))
    done = preloaded(words, program=build("wrapped", "wrapped.c"))
    assert without.stdout == "user: 0\nplugin: 0\nclosed: 0\nuser: 0\n"
    assert (done.status, done.stdout) == (0, without.stdout)


@API
@STATE
@pytest.mark.parametrize("caller", ["program", "plugin"])
def test_a_child_calls_while_its_parent_was_in_dl_iterate_phdr(
    caller: str, state: str, api: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    scope = Scope(build, api, state)
    flags = [flag for flag in (scope.flag, "-rdynamic") if flag]
    program = build(f"fork-first-{api}", "fork_first.c", *flags, link=[scope.runtime(7)])
    words = str(scope.plugin(6)) if caller == "plugin" else ""
    answer = 6 if caller == "plugin" else 7
    without = scope.compare(words, state, bare, preloaded, program)
    assert without.stdout == f"child: {answer}\nparent: {answer}\n"


@pytest.mark.parametrize("state", STATES)
def test_a_plugin_launches_through_its_own_tracer(state: str, build: Build, bare: Runner, preloaded: Runner) -> None:
    """Beside one that launches through another tracer, and each again when its decisions are kept."""
    stub = build.library("stub/libcuda.so.1", "stub_driver.c")
    plugins = []
    for number in range(2):
        tracer = build.library(f"libtracer{number}.so", "tracer.c", "-DTRACER")
        plugins.append(build.library(f"libtraced{number}.so", "tracer.c", link=[tracer, stub]))
    scope = Scope(build, "wrapper")
    words = f"local={plugins[0]} local={plugins[1]} call=0 call=0 call=1 call=0 call=1"
    without = scope.compare(words, state, bare, preloaded)
    answers = [line.split(": ")[1] for line in without.stdout.splitlines() if line.startswith("launch")]
    assert answers == ["6", "12", "6", "18", "12"]
