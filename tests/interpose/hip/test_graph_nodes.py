"""Nodes of graphs that a HIP program builds itself get what launches get, on each simulated version of the runtime."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hip_interposing import REGISTER, World
from interposing import report_of

from pyshim.launch import plan
from pyshim.launch.environment import environment

ROOT = Path(__file__).resolve().parents[3]
MODULES = (ROOT / "tests/simgpu", ROOT)

POLICY = """policy: 1
name: test
gpu: ["AMD *"]
when: {when}
communication: {{priority: inherit}}
compute: [{{match: {{kernel: "k*"}}, shape: {shape}}}]
"""

# k: 32 registers and 8 KiB; 4,000 blocks are many waves on a GCD of an MI250X. Kernels have one argument of 8 bytes.
PRELUDE = """
import ctypes as C, json, os
from hip_client import *
from tools.simgpu.hip.code_object import Kernel, bundle, code_object
NCCL = "ncclDevKernel_Generic_1"
kernels = [Kernel("k", vgprs=32, static_shared=8192, arguments=[8]), Kernel("other", arguments=[8]),
           Kernel("k2", vgprs=32, static_shared=8192, arguments=[8]), Kernel(NCCL, vgprs=64, arguments=[8])]
image = bundle({"gfx90a:sramecc+:xnack-": code_object(kernels)})
hip = Hip()
k, other, k2, nccl = hip.register(image, "k", "other", "k2", NCCL)
answers = []
def say(*values): answers.append(values)
def params(function, blocks=4000, shared=0, threads=256):
    return KernelParams(grid(threads), None, function, grid(blocks), C.cast(hip.arguments(7), P), shared)
def any_params(*words, **more):
    whole = NodeParams()
    whole.type, whole.kernel = 0, params(*words, **more)
    return whole
def graph(): return hip.new("hipGraphCreate", 0)
def node(g, *words, **more):
    return hip.new("hipGraphAddKernelNode", g, None, C.c_size_t(0), C.byref(params(*words, **more)))
def any_node(g, *words, **more):
    return hip.new("hipGraphAddNode", g, None, C.c_size_t(0), C.byref(any_params(*words, **more)))
def shown(n):
    found = KernelParams()
    code = hip.code("hipGraphKernelNodeGetParams", n, C.byref(found))
    return [code, found.grid.x, found.block.x, found.shared]
def make(g, form="flags"):
    if form == "plain": return hip.new("hipGraphInstantiate", g, None, None, C.c_size_t(0))
    if form == "flags": return hip.new("hipGraphInstantiateWithFlags", g, C.c_ulonglong(0))
    return hip.new("hipGraphInstantiateWithParams", g, C.byref((C.c_char * 64)()))
stream = hip.new("hipStreamCreateWithFlags", 1)
def run(executable, on=stream):
    say("run", hip.code("hipGraphLaunch", executable, on), hip.code("hipStreamSynchronize", on))
def attribute(n, which, value): return hip.code("hipGraphKernelNodeSetAttribute", n, which, (C.c_int * 16)(value))
def launch(host, blocks=4000, shared=0, on=stream):
    return hip.code("hipLaunchKernel", host, grid(blocks), grid(256), hip.arguments(7), C.c_size_t(shared), on)
def launch_function(f, shared=0):
    return hip.code("hipModuleLaunchKernel", f, 4000, 1, 1, 256, 1, 1, shared, stream, hip.arguments(7), None)
def last(): return hip.code("hipPeekAtLastError")
"""
END = "\nsay('last', last())\nprint(json.dumps(answers), flush=True)\n"


class Done(NamedTuple):
    said: Any
    launches: list[dict[str, Any]]
    report: dict[str, Any]

    @property
    def in_graphs(self) -> list[tuple[str, int, int]]:
        return [(one["kernel"], one["blocks"], one["dynamic_shared"]) for one in self.launches if one["graph"]]

    @property
    def totals(self) -> dict[str, Any]:
        return dict(self.report["totals"])

    @property
    def ways(self) -> dict[str, int]:
        return {way: count for way, count in self.totals["entry_points"].items() if count}


Both = Callable[..., tuple[Done, Done]]


class Runtime(NamedTuple):
    path: str
    table: bool = False  # it hands out its table of functions, and every call comes by that

    @property
    def version(self) -> int:
        return int(self.path[-1])


RUNTIMES = [*map(Runtime, plan.SIMULATED_RUNTIMES), Runtime(plan.SIMULATED_RUNTIMES[-1], table=True)]


@pytest.fixture(params=RUNTIMES, ids=lambda one: f"hip{one.version}" + "-table" * one.table)
def runtime(request: pytest.FixtureRequest) -> Runtime:
    return Runtime(*request.param)


@pytest.fixture
def newer(runtime: Runtime) -> None:
    """What HIP 5 does not have: hipGraphAddNode and its kin."""
    if runtime.version == 5:
        pytest.skip("HIP 5 has no generic parameters of nodes")


@pytest.fixture
def both(runtime: Runtime, world: World, clean_environment: Mapping[str, str], tmp_path: Path) -> Both:
    """both(snippet, shape=..., when=...) -> with the library, and without; the program must have seen the same."""
    numbers = itertools.count()

    def process(snippet: str, env: Mapping[str, str]) -> Done:
        folder = tmp_path / str(next(numbers))
        (folder / "report").mkdir(parents=True)
        (folder / "program.py").write_text(PRELUDE + snippet + END)
        more = {
            "SIMGPU": "mi250x",
            "SIMGPU_LIBRARY": runtime.path,
            "SIMGPU_LAUNCHES": str(folder / "launches"),
            "PYTHONPATH": os.pathsep.join(map(str, MODULES)),
            "OVERLAP_REPORT": str(folder / "report"),
            "OVERLAP_RUN_ID": "0123456789abcdef",
        }
        if runtime.table:
            registrar = world.build.library("librocprofiler-register.so.0", "hip_register.c")
            more |= {**REGISTER, "LD_LIBRARY_PATH": str(registrar.parent)}
        command = [sys.executable, str(folder / "program.py")]
        done = subprocess.run(command, env={**env, **more}, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        log = folder / "launches"
        lines = log.read_text().splitlines() if log.exists() else []
        report = report_of(folder / "report") if "LD_PRELOAD" in env else {}
        return Done(json.loads(done.stdout), [json.loads(line) for line in lines], report)

    def run(snippet: str, shape: str = "{blocks_per_sm: 1}", when: str = "always", **env: str) -> tuple[Done, Done]:
        policy = tmp_path / "policy.yaml"
        policy.write_text(POLICY.format(shape=shape, when=when))
        settings = plan.make(plan.Request(policy=str(policy)), clean_environment).settings
        with_library = process(snippet, {**environment(clean_environment, settings), **env})
        without = process(snippet, {**clean_environment, **env})
        assert with_library.said == without.said
        return with_library, without

    return run


SIZE = 24577  # and 8 KiB: more than half of the 64 KiB that a compute unit has
FORMS = ("node", "any_node")


@pytest.mark.parametrize("form", ["plain", "flags", "params"])
def test_a_node_gets_what_a_launch_gets(both: Both, runtime: Runtime, form: str) -> None:
    if form == "params" and runtime.version == 5:
        pytest.skip("HIP 5 has no such call")
    done, without = both(
        f"g = graph(); n = node(g, k); m = node(g, other); say(shown(n), shown(m)); run(make(g, {form!r}))\n"
        "say('launch', launch(k))"
    )
    assert done.in_graphs == [("k", 4000, SIZE), ("other", 4000, 0)]
    assert done.launches[-1]["dynamic_shared"] == SIZE
    assert [size for *_, size in without.in_graphs] == [0, 0]
    assert done.said[0] == [[0, 4000, 256, 0]] * 2, "the program reads back what it has set"
    assert done.ways == {"graph_node": 2, "dispatch_table" if runtime.table else "dlsym": 1}
    assert done.totals["shaped"] == 2 and done.totals["refused"] == 0
    assert done.report["processes"][0]["graph_launches"] == 1


def test_generic_parameters(both: Both, newer: None) -> None:
    done, _ = both(
        "g = graph(); n = any_node(g, k, shared=100); say(shown(n)); run(make(g))\n"
        "say(hip.code('hipGraphNodeSetParams', n, C.byref(any_params(k2, shared=50))), shown(n))\n"
        "e = make(g); run(e)\n"
        "say(hip.code('hipGraphExecNodeSetParams', e, n, C.byref(any_params(k, blocks=5000, shared=100)))); run(e)"
    )
    assert done.in_graphs == [("k", 4000, SIZE), ("k2", 4000, SIZE), ("k", 5000, SIZE)]
    assert done.ways == {"graph_node": 1}, "one that is changed is no second one"


def test_parameters_that_are_set(both: Both) -> None:
    done, _ = both(
        "g = graph(); n = node(g, other); e = make(g)\n"
        "say(hip.code('hipGraphKernelNodeSetParams', n, C.byref(params(k, shared=64))), shown(n)); run(make(g))\n"
        "say(hip.code('hipGraphExecKernelNodeSetParams', e, n, C.byref(params(k2, blocks=3000)))); run(e)\n"
        "found = KernelParams(); hip.hipGraphKernelNodeGetParams(n, C.byref(found)); found.grid.x = 6000\n"
        "say(hip.code('hipGraphKernelNodeSetParams', n, C.byref(found)), shown(n)); run(make(g))"
    )
    assert done.in_graphs == [("k", 4000, SIZE), ("k2", 3000, SIZE), ("k", 6000, SIZE)]


def test_what_could_not_be_told_again_is_not_given(both: Both) -> None:
    """Two sizes of one kernel that become the same."""
    done, _ = both("g = graph(); node(g, k); n = node(g, k, shared=64); say(shown(n)); run(make(g))")
    assert sorted(size for *_, size in done.in_graphs) == [64, SIZE]


def test_a_size_that_is_large_enough_stays(both: Both) -> None:
    done, _ = both("g = graph(); n = node(g, k, shared=40000); say(shown(n)); run(make(g))")
    assert done.in_graphs == [("k", 4000, 40000)]


@pytest.mark.parametrize("shared", [57344, 57345, 65536, 65537, 2**31])
def test_more_than_there_is_fails_as_it_would_alone(both: Both, shared: int) -> None:
    both(
        f"g = graph(); n = P(); say(hip.code('hipGraphAddKernelNode', C.byref(n), g, None, C.c_size_t(0), "
        f"C.byref(params(k, shared={shared}))), last())\n"
        f"m = node(g, k); say(hip.code('hipGraphKernelNodeSetParams', m, C.byref(params(k, shared={shared}))), last(),"
        " shown(m))"
    )


def test_a_node_that_becomes_a_cooperative_one_is_set_back(both: Both) -> None:
    """As the grids of such nodes fit on the GPU at once, this one does not become one; but it might have."""
    done, without = both(
        "g = graph(); n = node(g, k); m = node(g, k2); say(attribute(n, 2, 1), shown(n)); run(make(g))"
    )
    assert without.said[0][0] == 720
    assert done.in_graphs == [("k", 4000, 0), ("k2", 4000, SIZE)]


def test_parameters_of_a_cooperative_node_are_left_alone(both: Both) -> None:
    done, _ = both(
        "g = graph(); n = node(g, k, blocks=100); say(attribute(n, 2, 1)); e = make(g)\n"
        "say(hip.code('hipGraphKernelNodeSetParams', n, C.byref(params(k))), shown(n))\n"
        "say(hip.code('hipGraphExecKernelNodeSetParams', e, n, C.byref(params(k))))"
    )
    assert len(done.launches) == 3 and SIZE not in [one["dynamic_shared"] for one in done.launches]


def test_attributes_that_are_copied_from_a_cooperative_node(both: Both) -> None:
    done, _ = both(
        "g = graph(); n = node(g, k, blocks=100); m = node(g, k2); say(attribute(n, 2, 1))\n"
        "say(hip.code('hipGraphKernelNodeCopyAttributes', n, m), shown(m)); run(make(g))"
    )
    assert ("k2", 4000, 0) in done.in_graphs


def test_a_node_that_was_captured_from_a_cooperative_launch(both: Both) -> None:
    """Its attribute does not say that it is one, in the runtimes that there are."""
    done, _ = both(
        "g, nodes, count = P(), (P * 4)(), C.c_size_t(4)\n"
        "hip.hipStreamBeginCapture(stream, 0)\n"
        "say(hip.code('hipLaunchCooperativeKernel', k, grid(100), grid(256), hip.arguments(7), 0, stream))\n"
        "hip.hipStreamEndCapture(stream, C.byref(g)); hip.hipGraphGetNodes(g, nodes, C.byref(count))\n"
        "say(hip.code('hipGraphKernelNodeSetParams', P(nodes[0]), C.byref(params(k)))); run(make(g))"
    )
    assert SIZE not in [one["dynamic_shared"] for one in done.launches]


def test_a_node_of_a_kernel_that_was_launched_cooperatively_may_be_one(both: Both) -> None:
    """Where it was captured, the runtimes of AMD do not say so (the simulated ones do)."""
    done, _ = both(
        "say(hip.code('hipLaunchCooperativeKernel', k, grid(100), grid(256), hip.arguments(7), 0, stream))\n"
        "g = graph(); n = node(g, k, blocks=100)\n"
        "say(hip.code('hipGraphKernelNodeSetParams', n, C.byref(params(k))), shown(n)); run(make(g))"
    )
    assert done.in_graphs == [("k", 4000, 0)]


def test_captured_launches_show_what_was_asked_for(both: Both) -> None:
    done, _ = both(
        "f = hip.function(image, 'k2'); g, nodes, count = P(), (P * 4)(), C.c_size_t(4)\n"
        "hip.hipStreamBeginCapture(stream, 0)\n"
        "say(launch(k, shared=16), launch_function(f, shared=32))\n"
        "hip.hipStreamEndCapture(stream, C.byref(g)); hip.hipGraphGetNodes(g, nodes, C.byref(count))\n"
        "say([shown(P(n)) for n in nodes[:count.value]]); run(make(g))"
    )
    assert done.in_graphs == [("k", 4000, SIZE), ("k2", 4000, SIZE)]


@pytest.mark.parametrize("form", FORMS)
def test_a_node_that_is_refused_is_made_as_asked(both: Both, runtime: Runtime, form: str) -> None:
    if form == "any_node" and runtime.version == 5:
        pytest.skip("HIP 5 has no generic parameters of nodes")
    done, _ = both(
        f"g = graph(); n = {form}(g, k); say(shown(n), last()); m = {form}(g, k); say(last()); run(make(g))",
        SIMGPU_REFUSE="k:20000",
    )
    assert done.in_graphs == [("k", 4000, 0)] * 2
    assert done.totals["refused"] == 1 and done.totals["reasons"] == {"refused": 2}


@pytest.mark.parametrize("call", ["hipGraphKernelNodeSetParams', n", "hipGraphExecKernelNodeSetParams', e, n"])
def test_parameters_that_are_refused_are_set_as_asked(both: Both, call: str) -> None:
    done, _ = both(
        "g = graph(); n = node(g, k, blocks=10); e = make(g)\n"
        f"say(hip.code('{call}, C.byref(params(k, shared=8))), last())",
        SIMGPU_REFUSE="k:20000",
    )
    assert done.totals["refused"] == 1


@pytest.mark.parametrize("form", ["plain", "flags", "params"])
@pytest.mark.parametrize(
    "inside", ["", "outer = graph(); hip.new('hipGraphAddChildGraphNode', outer, None, C.c_size_t(0), g); g = outer"]
)
def test_a_graph_that_is_refused_is_set_back(both: Both, runtime: Runtime, form: str, inside: str) -> None:
    if form == "params" and runtime.version == 5:
        pytest.skip("HIP 5 has no such call")
    done, _ = both(
        f"g = graph(); n = node(g, k); m = node(g, other, shared=64)\n{inside}\ne = make(g, {form!r}); say(last())\n"
        "say(shown(n), shown(m)); run(e)",
        SIMGPU_REFUSE_INSTANTIATE="k:20000",
    )
    assert sorted(done.in_graphs) == [("k", 4000, 0), ("other", 4000, 64)]
    assert done.totals["refused"] == 1


def test_a_graph_that_is_wrong_by_itself_fails_as_it_would_alone(both: Both) -> None:
    both(
        "g = graph(); n = node(g, k); node(g, other, shared=30000); e = P()\n"
        "say(hip.code('hipGraphInstantiateWithFlags', C.byref(e), g, C.c_ulonglong(0)), last(), shown(n))\n"
        "say(hip.code('hipGraphInstantiateWithFlags', C.byref(e), None, C.c_ulonglong(0)), last())",
        SIMGPU_REFUSE_INSTANTIATE="other:20000",
    )


def test_nodes_that_are_no_kernels_and_nonsense(both: Both) -> None:
    both(
        "g = graph(); n = P(); empty = hip.new('hipGraphAddEmptyNode', g, None, C.c_size_t(0)); wrong = P(8)\n"
        "add = lambda p: hip.code('hipGraphAddKernelNode', C.byref(n), g, None, C.c_size_t(0), p)\n"
        "say(add(None), last(), add(C.byref(params(k, blocks=0))), last(), add(C.byref(params(k, threads=0))))\n"
        "say(add(C.byref(params(wrong))), last(), add(C.byref(params(None))), last())\n"
        "say(hip.code('hipGraphKernelNodeSetParams', None, C.byref(params(k))), last())\n"
        "say(hip.code('hipGraphKernelNodeSetParams', empty, C.byref(params(k))), last())\n"
        "say(attribute(empty, 2, 1), attribute(None, 2, 1), last())\n"
        "say(hip.code('hipGraphKernelNodeCopyAttributes', empty, None))\n"
        "say(hip.code('hipGraphKernelNodeGetParams', empty, None))"
    )


def test_what_a_policy_does_in_windows_only_is_left_alone(both: Both) -> None:
    """It is not known what a node that is added by hand runs beside."""
    done, _ = both("say(launch(nccl, blocks=16)); g = graph(); node(g, k); run(make(g))", when="overlapping")
    assert done.in_graphs == [("k", 4000, 0)]
    assert done.totals["reasons"]["not_overlapping"] == 1


def test_communication_in_a_graph_opens_a_window(both: Both) -> None:
    """The graph is launched on one stream, computation on another one."""
    work = "other_stream = hip.new('hipStreamCreateWithFlags', 1); g = graph(); node(g, {}, blocks=16); e = make(g)\n"
    work += "hip.hipGraphLaunch(e, stream); say([launch(k, on=other_stream) for _ in range(3)])"
    done, _ = both(work.format("nccl"), when="overlapping")
    assert done.totals["communication"] == 1
    assert [one["dynamic_shared"] for one in done.launches if one["kernel"] == "k"] == [SIZE] * 3
    done, _ = both(
        "say(launch(nccl, blocks=16)); hip.hipDeviceSynchronize()\n" + work.format("other"), when="overlapping"
    )
    assert [one["dynamic_shared"] for one in done.launches if one["kernel"] == "k"] == [0] * 3


# ---- Registers of modules ----

# Hand-written as rocBLAS' are: a wave takes 256 registers, the metadata say 128. Two of these fit, and not four.
MODULE = """
gemm = [Kernel("k", vgprs=128, agprs=128, said=128, arguments=[8])]
one = code_object(gemm)
both_modes = bundle({"gfx942": code_object(gemm, "gfx942"), "gfx90a:sramecc+:xnack-": one})
def load(how):
    module = P()
    image = both_modes if how == "bundle" else one
    if how == "file":
        path = os.environ["SIMGPU_LAUNCHES"] + ".co"
        open(path, "wb").write(image)
        hip.hipModuleLoad(C.byref(module), path.encode())
    elif how == "options":
        hip.hipModuleLoadDataEx(C.byref(module), one, 0, None, None)
    else:
        hip.hipModuleLoadData(C.byref(module), image)
    return module
def try_it(module):
    f = hip.new("hipModuleGetFunction", module, b"k")
    say(launch_function(f))
"""


@pytest.mark.parametrize("how", ["image", "bundle", "file", "options"])
def test_registers_are_those_of_the_descriptor(both: Both, how: str) -> None:
    """{blocks_per_sm: 2} has nothing to do where only two fit; by the metadata it would, where four did."""
    done, _ = both(MODULE + f"hip.hipInit(0); say(launch(other)); try_it(load({how!r}))", shape="{blocks_per_sm: 2}")
    assert done.launches[-1]["dynamic_shared"] == 0
    done, _ = both(
        MODULE.replace("agprs=128, said=128, ", "") + f"hip.hipInit(0); say(launch(other)); try_it(load({how!r}))",
        shape="{blocks_per_sm: 2}",
    )
    assert done.launches[-1]["dynamic_shared"] > 20000


def test_modules_that_come_and_go(both: Both) -> None:
    """What the next one takes is not what the last one took, also at the same address."""
    work = MODULE + "light = code_object([Kernel('k', vgprs=128, arguments=[8])])\nsay(launch(other))\n"
    work += "for i in range(40):\n    module = hip.new('hipModuleLoadData', one if i % 2 else light); try_it(module)\n"
    work += "    hip.hipStreamSynchronize(stream); hip.hipModuleUnload(module)"
    done, _ = both(work, shape="{blocks_per_sm: 2}")
    sizes = [one["dynamic_shared"] for one in done.launches if one["kernel"] == "k"]
    assert [size > 0 for size in sizes] == [True, False] * 20


@pytest.mark.hazard("peers", "after any library has ended, a node would show a size that was asked for by another one")
@pytest.mark.parametrize("again", ["", "m = node(g, k, shared=64)\n", "say(launch(k, shared=64))\n"])
def test_a_library_that_ends_leaves_the_sizes_of_others(both: Both, again: str) -> None:
    """No call says whose kernels they were, so all are learned anew."""
    work = "g = graph(); n = node(g, k, shared=200); hosts = hip.register(image, 'k')\n"
    work += f"unregister = hip.library['__hipUnregisterFatBinary']; unregister(hip.binary)\n{again}say(shown(n)[:3])\n"
    done, _ = both(f"{work}json_size = shown(n)[3]; say(json_size in (200, {SIZE}), json_size != 64)")
    assert done.launches[0]["dynamic_shared"] == SIZE


@pytest.mark.parametrize("call", ["hipStreamBatchMemOp"])
def test_the_last_error_of_a_call_that_fails_stays(both: Both, newer: None, call: str) -> None:
    both(f"say(launch(k)); say(hip.code({call!r}, None, 1, (C.c_uint64 * 32)(1), 1), last())")
