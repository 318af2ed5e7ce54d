"""The limit of dynamic shared memory is raised for us and believed by the program, whoever sets it at the same time."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, ONE, Build, Runner, same, smallest_size

# Two targets for one kernel: blocks of 512 threads get another size than those of 256.
TWO_TARGETS = """compute:
  - {match: {kernel: "*", threads: 512}, shape: {blocks_per_sm: 1}, when: always}
  - {match: {kernel: "*"}, shape: {blocks_per_sm: 2}, when: always}"""


@pytest.mark.parametrize(("word", "policy"), [("set", ONE), ("sizes", TWO_TARGETS)], ids=["set", "sizes"])
def test_threads_that_quarrel_about_it_see_no_error(
    word: str, policy: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    stub = build.library("limiting/libcuda.so.1", "counting_driver.c")
    program = build("limits", "limits.c", link=[stub])
    env = {"LD_LIBRARY_PATH": str(stub.parent)}
    without, done = bare([word], program=program, env=env), preloaded([word], policy, program=program, env=env)
    assert without.stdout == "failed: 0\n"
    same(done, without)
    # Rarely one comes between our two calls; then the driver refuses, the launch is made as asked, and the kernel left.
    assert sum(done.reasons.values()) == 4 * 60 * 40
    assert done.totals["refused"] <= 4
    for _ in range(3):
        if done.totals["refused"]:
            done = preloaded([word], policy, program=program, env=env)
    assert done.reasons["shaped"] > 4 * 60 * 40 // 2


@pytest.mark.parametrize("attribute", [8, 9])
def test_setting_what_was_set_costs_no_questions(attribute: int, build: Build, preloaded: Runner) -> None:
    """8 with its own value, 9 (the carveout): decisions stay."""
    stub = build.library("limiting/libcuda.so.1", "counting_driver.c")
    program = build("counting", "counting.c", link=[stub])
    done = preloaded([str(attribute)], ONE, program=program, env={"LD_LIBRARY_PATH": str(stub.parent)})
    assert done.stdout == f"bad: 0, largest size: {smallest_size(1)}, asked: 0\n"
    assert done.reasons == {"shaped": 100}


def test_a_limit_that_was_set_on_another_device_is_not_taken_for_this_ones(bare: Runner, preloaded: Runner) -> None:
    shaped, own = f"launch=k,{BLOCKS},256,0", f"launch=k,{BLOCKS},256,80000"
    words = f"lib=k set=k,8,80000 {shaped} {own} device=1 set=k,8,60000 {shaped} {own} launch=k,{BLOCKS},256,60000 "
    words += f"device=0 {own} {own} {shaped} get=k,8 device=1 {own} get=k,8"
    env = {"SIMGPU": "h100,2"}
    without, done = bare(words, env=env), preloaded(words, ONE, env=env)
    assert without.stdout.count("launch: 1\n") == 2
    same(done, without, but=["dynamic_shared"])
    assert done.totals["refused"] == 0


def test_a_refusal_is_remembered_for_every_device(bare: Runner, preloaded: Runner) -> None:
    words = f"lib=k repeat=6 launch=k,{BLOCKS},256,0 device=1 repeat=6 launch=k,{BLOCKS},256,0"
    env = {"SIMGPU": "h100,2", "SIMGPU_REFUSE": "k:50000"}
    without, done = bare(words, env=env), preloaded(words, ONE, env=env)
    assert (done.status, done.stdout) == (without.status, without.stdout)
    assert done.sizes == [smallest_size(1)] + [0] * 12
    assert done.totals["refused"] == 1
    assert done.reasons == {"refused": 12}


@pytest.mark.parametrize(
    "words",
    [
        f"set=k,8,60000 launch=k,{BLOCKS},256,55000 set=k,8,49152 launch=k,{BLOCKS},256,55000",
        # What is kept of the allowed size was kept before the limit was raised.
        f"set=k,8,60000 launch=k,100,256,55000 set=k,8,49152 launch=k,{BLOCKS},256,0 launch=k,100,256,55000",
        f"launch=k,100,256,40000 set=k,8,30000 launch=k,{BLOCKS},256,0 launch=k,100,256,40000",
        # It is ours, too.
        f"launch=k,{BLOCKS},256,0 launch=k,{BLOCKS},256,{smallest_size(1)}",
        f"launch=k,{BLOCKS},256,0 set=k,8,{smallest_size(1)} launch=k,{BLOCKS},256,{smallest_size(1)} set=k,8,49152 "
        f"launch=k,{BLOCKS},256,{smallest_size(1)}",
    ],
)
@pytest.mark.parametrize("load", ["ptx", "lib"])
def test_what_the_program_has_not_allowed_is_refused(load: str, words: str, bare: Runner, preloaded: Runner) -> None:
    words = f"{load}=k {words} get=k,8"
    without, done = bare(words), preloaded(words, ONE)
    assert without.stdout.splitlines()[-3] == "launch: 1"
    same(done, without, but=["dynamic_shared"])
    assert done.totals["refused"] == 0


# A CUkernel K and its CUfunction F: what shapes the one, then what the program does with the other.
BEYOND = f"get=k,8 get=k,9 launch=k,{BLOCKS},256,49153 occ=k,256,100000"
FORMS = {
    "function": "lib=k function=k {shape} kernel=0,k",
    "function of the module": "lib=k module=0 get_from=k {shape} kernel=0,k",
    "function of the module, before the kernel is known": "libonly=k module=0 get_from=k {shape} kernel=0,k",
    "kernel": "lib=k {shape} function=k",
    "kernel, then enumerated": "lib=k {shape} module=0 enum_from=k",
    "enumerated": "libonly=k module=0 enum_from=k {shape} kernel=0,k",
}
SHAPED = f"launch=k,{BLOCKS},256,0 launch=k,{BLOCKS},256,0"


@pytest.mark.parametrize("form", FORMS)
def test_the_other_form_of_a_shaped_kernel(form: str, bare: Runner, preloaded: Runner) -> None:
    start = FORMS[form].format(shape=SHAPED)
    for words in (
        f"{start} {BEYOND}",
        f"{start} set=k,8,60000 {BEYOND} launch=k,{BLOCKS},256,60000 kernel=0,k {BEYOND} launch=k,{BLOCKS},256,60000",
        f"{start} set=k,9,50 {BEYOND} kernel=0,k {BEYOND} function=k {BEYOND}",
        f"{start} set=k,8,60000 set=k,8,49152 launch=k,{BLOCKS},256,55000 launch=k,{BLOCKS},256,0 {BEYOND}",
    ):
        without, done = bare(words), preloaded(words, ONE)
        same(done, without, but=["dynamic_shared"])
        assert done.reasons["shaped"] >= 1


# Another handle of the kernel, which the program asks for where another context is current, or none.
AGAIN = {
    "enumerated again": "enum=k {shape} {elsewhere} enum_from=k {back}",
    "asked for again": "ptx=k {shape} {elsewhere} enum_from=k {back} again=0,k",
    "enumerated, then asked for": "ptxonly=k {elsewhere} enum_from=k {back} {shape} get_from=k",
    "enumerated, then enumerated": "ptxonly=k {elsewhere} enum_from=k {back} {shape} enum_from=k",
    "enumerated twice": "ptxonly=k {elsewhere} enum_from=k {back} {shape} {elsewhere} enum_from=k {back}",
    "of a library": "lib=k {shape} module=0 {elsewhere} enum_from=k {back}",
    "of a library, before": "libonly=k module=0 {elsewhere} enum_from=k {back} {shape} kernel=0,k",
    "of a library, never shaped": "lib=k module=0 {elsewhere} enum_from=k kernel=0,k {back} {shape} get_from=k",
}
ELSEWHERE = {"none": "endcontext=none", "another": "device=1"}


@pytest.mark.parametrize("elsewhere", ELSEWHERE)
@pytest.mark.parametrize("way", AGAIN)
def test_a_handle_that_is_got_elsewhere(way: str, elsewhere: str, bare: Runner, preloaded: Runner) -> None:
    start = AGAIN[way].format(shape=SHAPED, elsewhere=ELSEWHERE[elsewhere], back="device=0")
    env = {"SIMGPU": "h100,2"}
    for words in (
        f"device=0 {start} {BEYOND}",
        f"device=0 {start} set=k,8,60000 {BEYOND} launch=k,{BLOCKS},256,60001 set=k,9,50 {BEYOND}",
        # The handle ends with its own context alone.
        f"device=0 {start} device=1 endcontext=reset device=0 {BEYOND} endcontext=reset",
    ):
        without, done = bare(words, env=env), preloaded(words, ONE, env=env)
        assert "enum_from: 0" in without.stdout
        assert "launch: 1\n" in without.stdout
        same(done, without, but=["dynamic_shared"])


@pytest.mark.parametrize("load", ["ptx=k", "libonly=k module=0 get_from=k"])
def test_a_launch_while_another_device_is_current(load: str, bare: Runner, preloaded: Runner) -> None:
    """The limit that counts is that of the function's own device."""
    words = f"device=0 stream=0 {load} launch=k,{BLOCKS},256,0 device=1 launch=k,{BLOCKS},256,49153,1 sync"
    env = {"SIMGPU": "h100,2"}
    without, done = bare(words, env=env), preloaded(words, ONE, env=env)
    assert "launch: 1" in without.stdout
    assert (done.status, done.seen) == (without.status, without.seen)


@pytest.mark.parametrize(("first", "limit", "size"), [("", 60000, 0), (f"launch=k,{BLOCKS},256,0", 110000, 105000)])
def test_a_limit_that_is_set_by_the_function_of_a_librarys_module_counts(
    first: str, limit: int, size: int, bare: Runner, preloaded: Runner
) -> None:
    """As for the function that cuKernelGetFunction gives: it is the same one."""
    words = f"lib=k {first} module=0 get_from=k set=k,8,{limit} kernel=0,k launch=k,{BLOCKS},256,{size}"
    done, without = preloaded(words, ONE), bare(words)
    same(done, without, but=["dynamic_shared"])
    assert "set: 0" in without.stdout and without.stdout.count("launch: 0") == 1 + bool(first)
    assert done.totals["refused"] == 0
