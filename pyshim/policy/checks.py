"""Values that can be read and yet do nothing, or too much, on the GPUs of their policy."""

from __future__ import annotations

import yaml

from pyshim.policy import gpus
from pyshim.policy.parts import PartsReader
from pyshim.policy.words import Priority, Range


def launch_priority(reader: PartsReader, node: yaml.Node, found: Priority) -> Priority:
    if found.kind in ("highest", "number") and gpus.vendors(reader.gpus) == {gpus.AMD}:
        sentence = "HIP knows no priority of a launch, and this policy is for GPUs of AMD only"
        reader.note(node, "priority", sentence, "raise streams: `streams: {created_by: [...]}`", "warning")
    return found


def reserve_cus(reader: PartsReader, node: yaml.Node, found: int) -> int | None:
    """Check that the policy's largest GPU keeps a compute unit for computation."""
    if not found:
        return found
    if gpus.vendors(reader.gpus) == {gpus.NVIDIA}:
        sentence = "only GPUs of AMD have streams with a mask of compute units, and this policy is for none of them"
        reader.note(node, "reserve-cus", sentence, "leave the key out", "warning")
        return found
    amd = [gpu for gpu in gpus.matching(reader.gpus) if gpu.vendor == gpus.AMD]
    most = max(amd, key=lambda gpu: gpu.multiprocessors, default=None)
    if most is None or found < most.multiprocessors:
        small = [gpu for gpu in amd if gpu.multiprocessors <= found]
        if small:
            has = ", ".join(f"{gpu.name} has {gpu.multiprocessors}" for gpu in small)
            sentence = (
                f"{found:,} compute units are all there are on some of its GPUs, where nothing is reserved: {has}"
            )
            reader.note(node, "reserve-cus", sentence, "a policy for each of them", "warning")
        return found
    sentence = f"{found:,} compute units leave none to computation: {most.name} has {most.multiprocessors}"
    reader.note(node, "reserve-cus", sentence, f"write at most {most.multiprocessors - 1}")
    return None


def resident_blocks(reader: PartsReader, node: yaml.Node, found: Range) -> Range:
    most = reader.most_blocks()
    if most and found.minimum > most:
        sentence = f"no GPU of this policy holds more than {most} blocks on a multiprocessor: this never holds"
        reader.note(node, "never", sentence, f"ask for {most} or fewer", "warning")
    return found


def blocks_per_sm(reader: PartsReader, node: yaml.Node, found: int) -> None:
    most = reader.most_blocks()
    if most and found >= most:
        sentence = f"no GPU of this policy holds more than {most} blocks at once, so this changes nothing"
        hint = f"did you mean `{found}%`, of the kernel's own?" if found <= 100 else "write fewer"
        reader.note(node, "blocks", sentence, hint, "warning")
