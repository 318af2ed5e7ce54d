"""The thunks of shim/vendor/*/driver.def: calls that are unwound, and what the assembler says of arguments."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from interposing import ONE, Build, Runner

VENDOR = Path(__file__).resolve().parents[2] / "shim" / "vendor"
ROW = re.compile(r"^(?:DRIVER|BOTH|COPY_\w+)\((\w+), (?:\w+, )?(?:\((.*?)\)|(\w+_PARAMETERS))", re.M)
PARAMETERS = re.compile(r"^#define (\w+_PARAMETERS) +\(([^)]*)\)", re.M)
SHAPE = re.compile(r"^#define SHAPE_(\w+) ", re.M)
# Passed in one register. All others are pointers, or handles, which are.
STRUCTS = {"dim3", "hipExtent", "hipPitchedPtr", "CUipcEventHandle", "hipIpcEventHandle_t"}
SCALARS = re.compile(r"(?:u?int\d*_t|int|size_t|(?:CU|hip)\w+|uint64_t)")


@pytest.mark.hazard("processes", "a thread that is cancelled while it waits for the GPU would end the process")
@pytest.mark.parametrize("policy", [ONE, "observe", None], ids=["armed", "observe", "alone"])
def test_a_thread_is_cancelled_inside_the_driver(
    policy: str | None, build: Build, bare: Runner, preloaded: Runner
) -> None:
    """By every way, and every shape of a stub: forced unwinding passes our frames."""
    stub = build.library("unwind/libcuda.so.1", "unwind_driver.c", "-fvisibility=hidden", "-Wl,-Bsymbolic")
    program = build("unwind-program", "unwind.c", link=[stub, "-ldl", "-pthread"])
    env = {"LD_LIBRARY_PATH": str(stub.parent)}
    done = bare([], program=program, env=env) if policy is None else preloaded([], policy, program=program, env=env)
    assert (done.status, done.stdout) == (0, "cancelled: 6 cleaned: 6\n"), done.stderr


def test_the_assembler_knows_of_all_structs_that_are_passed_by_value() -> None:
    known = set(SHAPE.findall((VENDOR / "common" / "thunks_x86_64.S").read_text()))
    found = set()
    for path in VENDOR.glob("*/*.def"):
        text = path.read_text().replace("\\\n", " ")
        named = dict(PARAMETERS.findall(text))
        for name, given, by_name in ROW.findall(text):
            parameters = named[by_name] if by_name else given
            types = {re.sub(r"\bconst\b", "", part).split()[0] for part in parameters.split(",") if "*" not in part}
            assert all(SCALARS.fullmatch(one) or one in STRUCTS or one == "void" for one in types), (name, types)
            if types & STRUCTS:
                found.add(name)
    assert found and found == {name for name in known if not name.isdigit()}
