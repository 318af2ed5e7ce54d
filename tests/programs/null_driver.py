"""Programs on the driver that does nothing (tools/bench/null_driver.c), under each setting in which users run them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from interposing import Build, Done, Runner

SETTINGS = ("bare", "off", "observe", "default", "h100-paper")
ARMED = SETTINGS[2:]
HANG = 60  # seconds; what is run here takes less than one
HIDDEN = ("-fvisibility=hidden", "-Wl,-Bsymbolic")
Under = Callable[..., Done]


def driver_of(build: Build) -> Path:
    return build.library("null/libcuda.so.1", "../../tools/bench/null_driver.c", *HIDDEN)


@pytest.fixture
def under(build: Build, bare: Runner, preloaded: Runner) -> Under:
    """under(setting, program, words, preload=LIBRARY): the program, built of its source, beside that library."""

    def run(setting: str, name: str, words: str, preload: Path | None = None, **more: Any) -> Done:
        driver = driver_of(build)
        program = build(name, f"{name}.c", link=[driver])
        command = [*more.pop("command", ()), str(program), *words.split()]
        folders = [driver.parent, *([preload.parent] if preload else [])]
        env = {"LD_LIBRARY_PATH": ":".join(map(str, folders)), **more.pop("env", {})}
        more = {"program": command[0], "timeout": HANG, **more}
        if setting == "bare":
            return bare(command[1:], env={**env, **({"LD_PRELOAD": str(preload)} if preload else {})}, **more)
        if setting == "off":
            env["OVERLAP_RUN"] = "off"
        policy = "default" if setting == "off" else setting
        return preloaded(command[1:], policy, env=env, preload=f"{{}}:{preload}" if preload else "{}", **more)

    return run


def said(done: Done, name: str) -> int:
    """What the program says of itself on stderr: `name: NUMBER`."""
    found = re.search(rf"^{name}: (-?\d+)$", done.stderr, re.M)
    assert found, done.stderr
    return int(found[1])
