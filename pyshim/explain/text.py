"""An answer for people: one screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

from pyshim.explain.answer import Explainer

FOOTPRINT_HEADS = ("one block of", "threads", "registers", "static", "dynamic", "alone", "limited by")
SIZE_HEADS = ("blocks", "of its own", "make room: from", "to bytes", "quick entry: from", "to bytes")
WIDTH = 80
MOST_SIZES = 12  # rows; small kernels have up to 32

_LIMITS = {"shared_memory": "shared memory", "slots": "block slots", None: "cannot be launched"}


def headline(explainer: Explainer) -> list[str]:
    gpu = explainer.device
    name = bytes(gpu.name).split(b"\0", 1)[0].decode()
    amd = gpu.vendor == explainer.constants.OVERLAP_VENDOR_AMD
    one = "compute unit" if amd else "multiprocessor"
    registers = f"{gpu.registers // gpu.warp_size:,} registers a lane" if amd else f"{gpu.registers:,} registers"
    return [
        f"{name}: {gpu.multiprocessors} {one}s, and each has room for {gpu.blocks} blocks,",
        f"{_all_warps(gpu)} warps, {registers} and {gpu.shared:,} bytes of shared memory",
    ]


def footprints(explainer: Explainer) -> Sequence[Sequence[object]]:
    """Rows below FOOTPRINT_HEADS."""
    rows = []
    for who in ("computation", "communication"):
        numbers = explainer.footprint(who)[:4]
        blocks, limit = explainer.occupancy(who)
        rows.append((who, *(f"{number:,}" for number in numbers), f"{blocks}", _LIMITS.get(limit, limit)))
    return rows


def sizes(found: Mapping[str, Any]) -> Sequence[Sequence[str]]:
    """Rows below SIZE_HEADS: the dynamic sizes with which so many blocks stay resident, from the most blocks down."""
    windows, entries = ({window["blocks"]: window for window in found[name]} for name in ("windows", "entries"))
    rows = []
    for blocks in sorted({*windows, *entries}, reverse=True):
        ends = []
        for window in (windows.get(blocks), entries.get(blocks)):
            ends += [f"{window['minimum']:,}", f"{window['maximum']:,}"] if window else ["-", ""]
        rows.append((f"{blocks}", f"{100 * blocks // found['native_blocks']} %", *ends))
    return rows


def verdict(explainer: Explainer, values: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Lines: what is done, why, by which rule, what it costs, and what would change it."""
    lines = [
        ("decision", _decision(values, found)),
        ("because", f"{found['reason']}: {explainer.sentence(found['reason'])}"),
        ("rule", _rule(found)),
    ]
    if found["native_blocks"]:
        lines.append(("cost", _cost(explainer, found)))
        lines.append(("as asked", _as_asked(found)))
    lines.append(("would help", _help(found)))
    return [line for label, text in lines if text for line in _wrapped(label, text)]


def _wrapped(label: str, text: str) -> list[str]:
    margin = " " * 12
    return wrap(text, WIDTH, initial_indent=f"{label:<12}", subsequent_indent=margin, break_long_words=False)


def _decision(values: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    size, asked = found["dynamic_shared_memory"], values["asked"]
    if size != asked:
        rule = found["rule"]
        where = " (in overlap windows only)" if rule and rule["when"] == "overlapping" else ""
        return f"{found['control']}: {size:,} bytes of dynamic shared memory instead of {asked:,}{where}"
    return f"{found['control']}: launched as asked"


def _rule(found: Mapping[str, Any]) -> str:
    rule = found["rule"]
    if rule is None:
        return "none of the policy's"
    keep = f", keep_at_least {rule['keep_at_least']}%" if rule["keep_at_least"] else ""
    where = f", line {rule['line']} of {rule['policy']}, when {rule['when']}" if rule["policy"] else ""
    return f"{rule['shape']}{keep}{where}"


def _cost(explainer: Explainer, found: Mapping[str, Any]) -> str:
    before, after = (_occupancy(explainer, found[name]) for name in ("native_blocks", "blocks"))
    return f"{before}, as before" if before == after else f"{before} before, {after} after"


def _occupancy(explainer: Explainer, blocks: int) -> str:
    gpu, threads = explainer.device, explainer.footprint("computation")[0]
    warps, most = blocks * -(-threads // gpu.warp_size), _all_warps(gpu)
    return f"{blocks} block{'' if blocks == 1 else 's'} ({100 * warps // most} % of the warps)"


def _all_warps(gpu: Any) -> int:
    return int(gpu.threads // gpu.warp_size)


def _as_asked(found: Mapping[str, Any]) -> str:
    """Without any change of size."""
    beside, native = found["beside_after_drain"], found["native_blocks"]
    if beside < 0:
        return "communication fits nowhere on this GPU"
    if beside == native:
        return ""
    if beside == 0:
        return "communication waits until a multiprocessor is empty"
    return f"communication fits once {native - beside} of {native} blocks have ended"


def _help(found: Mapping[str, Any]) -> str:
    text = found["help"]
    if text:
        is_variable = text.split("=")[0].isupper()
        return f"{text} (all ranks must agree on it)" if is_variable else text
    refused = found["reason"] in ("priority", "below_keep") or found["reason"].startswith("no_room_")
    return "no setting that is known" if refused else ""
