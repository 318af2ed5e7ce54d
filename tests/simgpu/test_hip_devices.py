"""AMD's devices, by the runtime of each version; and which library has which devices."""

from __future__ import annotations

from typing import Any

import pytest


def test_what_a_device_says(on_hip: Any, version: int) -> None:
    run = on_hip(
        """
text = C.create_string_buffer(64)
hip.hipDeviceGetName(text, 64, 0)
bus = C.create_string_buffer(32); hip.hipDeviceGetPCIBusId(bus, 32, 0)
memory = C.c_size_t(); hip.hipDeviceTotalMem(C.byref(memory), 0)
attribute = lambda id: hip.number("hipDeviceGetAttribute", id, 0)
block = C.create_string_buffer(2048)
hip.code("hipGetDeviceProperties" if version == 5 else "hipGetDevicePropertiesR0600", block, 0)
arch = block.raw.find(b"gfx90a")
runtime = C.c_int(); hip.hipRuntimeGetVersion(C.byref(runtime))
answer([text.value.decode(), bus.value.decode(), memory.value >> 30,
        [attribute(id) for id in (63, 87, 74, 75, 10002, 57, 25, 23, 61, 56, 10)],
        block.value.decode(), arch, block.raw[arch:arch + 22].decode(), runtime.value // 100000])
""",
        version,
    )
    assert run.answer[:3] == ["AMD Instinct MI250X", "0000:01:00.0", 64]
    assert run.answer[3] == [110, 64, 65536, 65536, 65536, 2048, 32, 9, 0, 1024, 1]
    assert run.answer[4] == "AMD Instinct MI250X"
    assert run.answer[5:7] == [396 if version == 5 else 1160, "gfx90a:sramecc+:xnack-"]
    assert run.answer[7] == {5: 507, 6: 604, 7: 702}[version]


def test_properties_as_programs_of_before_6_ask_for_them(on_hip: Any) -> None:
    run = on_hip("""
block = C.create_string_buffer(2048)
names = ("hipGetDeviceProperties", "hipGetDevicePropertiesR0000")
answer([hip.code(name, block, 0) or block.raw.find(b"gfx942") for name in names])
""", gpu="mi300x")  # fmt: skip
    assert run.answer == [396, 396]


WHO = """
names = []
code, count = hip.code("hipGetDeviceCount", C.byref(C.c_int())), C.c_int()
hip.code("hipGetDeviceCount", C.byref(count))
for device in range(count.value):
    text, bus, uuid = C.create_string_buffer(64), C.create_string_buffer(32), C.create_string_buffer(16)
    hip.hipDeviceGetName(text, 64, device); hip.hipDeviceGetPCIBusId(bus, 32, device)
    hip.hipDeviceGetUuid(uuid, device)
    names.append([text.value.decode()[-6:], bus.value.decode()[5:7], uuid.raw.decode()])
answer([code, count.value, [name[0] + name[1] for name in names], [name[2] for name in names]])
"""


@pytest.mark.parametrize(
    ("gpu", "environment", "seen"),
    [
        ("mi250x,3", {}, ["MI250X01", "MI250X02", "MI250X03"]),
        ("mi250x+mi300x,3", {}, ["MI250X01", "MI300X02", "MI250X03"]),
        ("h100+mi250x,4", {}, ["MI250X01", "MI250X02"]),
        ("mi250x,4", {"HIP_VISIBLE_DEVICES": "2,0"}, ["MI250X03", "MI250X01"]),
        ("mi250x,4", {"ROCR_VISIBLE_DEVICES": "3,1", "HIP_VISIBLE_DEVICES": "1"}, ["MI250X02"]),
        ("mi250x,4", {"CUDA_VISIBLE_DEVICES": "1"}, ["MI250X02"]),
        ("mi250x,4", {"CUDA_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "3,9,1"}, ["MI250X04"]),
        ("mi250x,2", {"ROCR_VISIBLE_DEVICES": "GPU-simgpu-mi250x-01"}, ["MI250X02"]),
        ("mi250x,2", {"HIP_VISIBLE_DEVICES": ""}, []),
        ("h100,2", {}, []),
    ],
)
def test_which_devices_there_are(on_hip: Any, gpu: str, environment: dict[str, str], seen: list[str]) -> None:
    run = on_hip(WHO, gpu=gpu, **environment)
    assert run.answer[:3] == [0 if seen else 100, len(seen), seen]
    assert run.answer[3] == [f"simgpu-{name[:6].lower()}-{int(name[6:]) - 1:02}" for name in seen]
    assert run.stderr == ""


def test_nvidias_driver_has_the_others(simulate: Any) -> None:
    count = "d = Driver(); n = C.c_int(); d.cuDeviceGetCount(C.byref(n)); answer(n.value)"
    assert simulate(count, gpu="h100+mi250x,5").answer == 3
    run = simulate("library = C.CDLL(os.environ['SIMGPU_LIBRARY']); answer(library.cuInit(0))", gpu="mi250x")
    assert (run.answer, run.stderr) == (100, "")


def test_threads_and_devices(on_hip: Any, version: int) -> None:
    """A thread begins on device 0; a kernel runs on the device of its stream."""
    run = on_hip(
        """
import threading
host, = hip.register(bundle({"gfx90a": code_object([Kernel("k")])}), "k")
args = hip.arguments()
hip.hipSetDevice(1)
s = hip.new("hipStreamCreate"); hip.hipSetDevice(0)
hip.hipLaunchKernel(host, Dim3(1, 1, 1), Dim3(64, 1, 1), args, C.c_size_t(0), s)
hip.hipLaunchKernel(host, Dim3(1, 1, 1), Dim3(64, 1, 1), args, C.c_size_t(0), None)
hip.hipSetDevice(1)
seen = []
thread = threading.Thread(target=lambda: seen.append(hip.number("hipGetDevice"))); thread.start(); thread.join()
hip.hipDeviceSynchronize(); hip.hipSetDevice(0); hip.hipDeviceSynchronize()
answer([seen, hip.library.hipGetStreamDeviceId(s), hip.code("hipSetDevice", 2), hip.number("hipGetDevice")])
""",
        version,
        gpu="mi250x,2",
    )
    assert run.answer == [[0], 1, 101, 0]
    assert sorted(row["device"] for row in run.timeline) == [0, 1]


def test_a_reset_device_begins_anew(on_hip: Any) -> None:
    run = on_hip("""
host, = hip.register(code_object([Kernel("k")]), "k")
launch = lambda: hip.code("hipLaunchKernel", host, Dim3(1, 1, 1), Dim3(64, 1, 1), hip.arguments(), C.c_size_t(0), None)
s = hip.new("hipStreamCreate")
answer([launch(), hip.code("hipDeviceReset"), launch(), hip.code("hipStreamSynchronize", s)])
""")
    assert run.answer == [0, 0, 0, 400]


@pytest.mark.parametrize(
    ("image", "code"),
    [
        ("code_object([Kernel('k')])", 0),
        ("code_object([Kernel('k')], 'gfx942')", 209),
        ("code_object([Kernel('k')], 'gfx1100')", 209),
        ("bundle({'gfx942': b'x', 'gfx90a:xnack+': b'x', 'gfx90a:xnack-': code_object([Kernel('k')])})", 0),
        ("bundle({'gfx90a:xnack+': code_object([Kernel('k')])})", 209),
        ("bundle({'gfx90a': b'not code'})", 200),
        ("b'CCOB' + bytes(64)", 209),
        ("b'nothing of the kind'", 200),
    ],
)
def test_code_objects_and_bundles(on_hip: Any, image: str, code: int) -> None:
    run = on_hip(f"image = {image}\nanswer(hip.code('hipModuleLoadData', C.byref(P()), image))")
    assert run.answer == code
    line = "simgpu: this code is compressed, which the simulated GPU does not unpack; build without -offload-compress\n"
    assert run.stderr == (line if "CCOB" in image else "")
