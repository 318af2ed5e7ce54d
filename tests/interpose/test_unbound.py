"""dlsym and dlopen are called before anything is ready: while the loader still binds, and before all constructors."""

from __future__ import annotations

import platform

import pytest
from interposing import Build, Runner, same

from pyshim.start import plan

NODE = {"x86_64": "GLIBC_2.2.5", "aarch64": "GLIBC_2.17"}.get(platform.machine(), "GLIBC_2.2.5")


@pytest.mark.parametrize("kind", ["pie", "no-pie"])
@pytest.mark.parametrize("env", [{}, {"LD_BIND_NOW": "1"}, {"OVERLAP_RUN": "off"}])
@pytest.mark.plain("no sanitizer has started by then", sanitized=True)
def test_a_resolver_that_asks_dlsym_while_we_are_not_bound_gets_the_real_answer(
    env: dict[str, str], kind: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    link = ["-Wl,--no-as-needed", plan.SIMULATED_DRIVER]
    library = build.library("libifunc.so", "ifunc.c", f'-DNODE="{NODE}"', link=link)
    program = build(
        f"ifunc-{kind}", "ifunc_main.c", f"-{kind}", "-fPIE" if kind == "pie" else "-fno-pie", link=[library]
    )
    without = bare(program=program, env=env)
    assert without.stdout == "chosen 42 42 42 42\n"
    same(preloaded(program=program, env=env), without)
