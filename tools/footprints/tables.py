"""The comment table of a policy: what the planner says of typical computation beside NCCL or RCCL on one GPU.

    python tools/footprints/tables.py GPU                    # h100, mi250x ...; prints it
    python tools/footprints/tables.py GPU --write POLICY     # puts it into a policy file, between its two markers
    python tools/footprints/tables.py GPU --check POLICY     # exit status 1 where the file has another one

Footprints are those of the tables beside this file; the arithmetic is the planner of the library itself, so what it
says here is what it does in a program. Nothing in it was measured on a GPU.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))  # as a script, this has only its own folder to import from

from pyshim import _native  # noqa: E402

BEGIN = "# --- table for {gpu}: .venv/bin/python tools/policy_tables.py --write ---"  # after make setup
END = "# --- end of table ---"
WIDTH = 118
OLDEST = (2, 21)  # of NCCL: older ones are not what programs of today run


@dataclass(frozen=True)
class Kernel:
    name: str
    threads: int
    registers: int
    static: int
    dynamic: int | None


def architecture_of(gpu: Any) -> str:
    return _native.text(_native.ffi.cast("char *", gpu.architecture))


def known_gpu(key: str) -> Any:
    lib = _native.library()
    gpu, index = _native.ffi.new("struct overlap_gpu *"), 0
    while lib.overlap_gpu_known(index, gpu):
        if _native.text(_native.ffi.cast("char *", gpu.key)) == key:
            return gpu
        index += 1
    raise SystemExit(f"tables.py: no GPU is called {key}; `overlap gpus` lists them")


def image_for(architecture: str, images: set[str]) -> str | None:
    """Which image runs: the same major number, the largest minor that is not above; on AMD, the very same."""
    if not architecture.startswith("sm_"):
        return architecture if architecture in images else None
    number = int(architecture[3:])
    fitting = [int(image[3:]) for image in images if re.fullmatch(r"sm_\d+", image)]
    fitting = [image for image in fitting if image // 10 == number // 10 and image <= number]
    return f"sm_{max(fitting)}" if fitting else None


def computation(architecture: str) -> list[Kernel]:
    rows = json.loads((HERE / "compute.json").read_text(encoding="utf-8"))["rows"]
    numbers = ("threads", "registers", "static_shared_memory", "dynamic_shared_memory")
    return [Kernel(row["name"], *(row[name] for name in numbers)) for row in rows if architecture in row["gpus"]]


def communication(architecture: str) -> Iterator[Kernel]:
    library = "nccl" if architecture.startswith("sm_") else "rccl"
    for path in sorted(HERE.glob(f"{library}-*.json")):
        table = json.loads(path.read_text(encoding="utf-8"))
        rows = [row for row in table["rows"] if row["family"] == "ncclDevKernel"]
        image = image_for(architecture, {row["architecture"] for row in rows})
        version = table["version"].rsplit(".", 1)[0]
        if library == "nccl" and tuple(map(int, version.split("."))) < OLDEST:
            continue
        for row in (row for row in rows if row["architecture"] == image):
            registers, static = row["registers"]["most"], row["static_shared_memory"]["most"]
            if library == "rccl":
                yield Kernel(f"{version} unroll {row['shape']}", row["threads"], registers, static, 0)
                continue
            outside = {fact["what"]: fact for fact in table["not_in_the_binary"] if fact["family"] == row["family"]}
            for threads in sorted(set(outside["threads"]["values"].values()), reverse=True):
                yield Kernel(version, threads, registers, static, outside["dynamic_shared_memory"]["bytes"])


def plan(gpu: Any, kernel: Kernel, beside: Kernel) -> Any:
    ffi, lib = _native.ffi, _native.library()
    launch, other, answer = (ffi.new(f"struct overlap_{name} *") for name in ("launch", "footprint", "plan"))
    for footprint, source in ((launch.footprint, kernel), (other, beside)):
        footprint.threads, footprint.registers = source.threads, source.registers
        footprint.static_shared, footprint.dynamic_shared = source.static, source.dynamic or 0
    launch.blocks = 1 << 20  # many waves
    launch.maximum_dynamic = gpu.shared_optin - kernel.static
    lib.overlap_plan_of(gpu, launch, other, lib.OVERLAP_SHAPE_MAKE_ROOM, 0, 0, answer)
    return answer


def verdict(gpu: Any, kernel: Kernel, beside: Kernel) -> str:
    """What can be done, best first. Sizes are dynamic bytes, both ends included."""
    lib, answer = _native.library(), plan(gpu, kernel, beside)
    if answer.control == lib.OVERLAP_CONTROL_ROOM_ALREADY:
        return "room already"
    said = []
    for windows, count, name in (
        (answer.windows, answer.window_count, "room"),
        (answer.entries, answer.entry_count, "quick entry"),
    ):
        for window in (windows[index] for index in range(count)):
            if not window.inflates:
                said.append("entry already" if name == "quick entry" else "room already")
            else:
                said.append(f"{name} at {window.blocks} with {window.minimum:,} to {window.maximum:,}")
            break  # the largest number of blocks is what the planner takes
    if said:
        return "; ".join(said)
    if answer.beside_after_drain > 0:
        return f"priority only: {answer.beside_after_drain} beside it after the others have ended"
    if answer.beside_after_drain < 0:
        return "communication fits nowhere"
    limits = {lib.OVERLAP_LIMIT_REGISTERS: "registers", lib.OVERLAP_LIMIT_SHARED: "shared memory"}
    return f"never together: {limits.get(answer.binding, 'warps or slots')}"


def lines(gpu: Any) -> Iterator[str]:
    architecture = architecture_of(gpu)
    library = "NCCL" if architecture.startswith("sm_") else "RCCL"
    others = list(communication(architecture))
    for kernel in computation(architecture):
        occupancy = plan(gpu, kernel, others[0]).native_blocks
        dynamic = "dynamic size unknown, taken as 0" if kernel.dynamic is None else f"{kernel.dynamic:,} dynamic"
        if not occupancy:  # a size for GPUs with more shared memory
            continue
        size = f"{kernel.static:,} bytes static, {dynamic}"
        head = f"{kernel.name} ({kernel.threads} threads of {kernel.registers} registers, {size}; {occupancy} resident)"
        yield from textwrap.wrap(head, WIDTH, subsequent_indent="    ")
        said: dict[str, dict[int, list[str]]] = {}
        for other in others:
            answer = verdict(gpu, kernel, other)
            said.setdefault(answer, {}).setdefault(other.threads, []).append(other.name)
        for answer, threads in said.items():
            yield from textwrap.wrap(
                f"{answer}: {library} {named(threads)}", WIDTH - 4, initial_indent="  ", subsequent_indent="    "
            )


def named(threads: dict[int, list[str]]) -> str:
    """Versions by their threads; the same versions are said once."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for count, versions in threads.items():
        groups.setdefault(tuple(versions), []).append(count)
    return "; ".join(
        f"{', '.join(versions)} with {', '.join(map(str, counts))} threads" for versions, counts in groups.items()
    )


def table(key: str) -> str:
    body = "".join(f"# {line}\n" for line in lines(known_gpu(key)))
    return f"{BEGIN.format(gpu=key)}\n{body}{END}\n"


def replaced(text: str, key: str) -> str:
    """The policy with the table of today."""
    first = BEGIN.format(gpu=key) + "\n"
    if text.count(first) != 1 or text.count(END + "\n") != 1 or text.index(first) > text.index(END):
        raise SystemExit(f"tables.py: the file has not the lines `{first.strip()}` and `{END}`, in this order")
    return text[: text.index(first)] + table(key) + text[text.index(END) + len(END) + 1 :]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gpu")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", type=Path, metavar="POLICY")
    what.add_argument("--check", type=Path, metavar="POLICY")
    options = parser.parse_args()
    path: Path | None = options.write or options.check
    if path is None:
        print(table(options.gpu), end="")
        return 0
    before = path.read_text(encoding="utf-8")
    after = replaced(before, options.gpu)
    if options.write:
        path.write_text(after, encoding="utf-8")
    elif before != after:
        print(f"tables.py: {path}: its table is not of today; --write makes it anew", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
