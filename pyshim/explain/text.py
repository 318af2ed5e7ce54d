"""An answer for people: one screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyshim.explain.answer import FOOTPRINT, SHAPES, Explainer
from pyshim.explain.parts import Part, Prose, Table, apart, cut, plural
from pyshim.policy.show import one_line

_HEADS = ("one block of", "threads", "registers", "static", "dynamic", "resident")
_SIZE_HEADS = ("blocks", "of its own", "make room, bytes", "quick entry, bytes")
_MOST_SIZES = 5  # rows; small kernels have up to 32
_MOST_SHADOWED, _MOST_CHANGES = 2, 5
_LIMITS = {
    "shared_memory": "shared memory",
    "slots": "block slots",
    "warps": "warps",
    "registers": "registers",
    "barriers": "barriers",
}


def screen(
    explainer: Explainer, values: Mapping[str, Any], found: Mapping[str, Any], beside: str = "", more: str = ""
) -> Iterator[Part]:
    """values: of the last request; found: its whole answer. beside: what its communication is, where nobody told it;
    more: what else there is to say about communication."""
    return apart(
        _headline(explainer, values, found),
        _footprints(found, beside),
        _sizes(found),
        _verdict(explainer, values, found, more),
    )


def decided(control: str, size: int, asked: int) -> str:
    """What is done, with its number."""
    return f"{control}: {size:,} bytes of dynamic shared memory instead of {asked:,}"


def ruled(rule: Mapping[str, Any]) -> str:
    """What a rule asks for."""
    words = [rule["shape"]]
    if rule["keep_at_least"]:
        words.append(f"keep_at_least {rule['keep_at_least']}%")
    if rule["place"] and rule["shape"] != "leave":
        words.append(f"when {rule['when']}")
    if rule["when_dispatch"] != "unknown":
        words.append(f"when_dispatch {rule['when_dispatch']}")
    return ", ".join(words)


def _headline(explainer: Explainer, values: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Part]:
    gpu = explainer.device
    name = bytes(gpu.name).split(b"\0", 1)[0].decode()
    amd = gpu.vendor == explainer.constants.OVERLAP_VENDOR_AMD
    one = "compute unit" if amd else "multiprocessor"
    registers = f"{gpu.registers // gpu.warp_size:,} registers a lane" if amd else f"{gpu.registers:,} registers"
    if values.get("kernel"):
        under = f" under {values['policy']}" if "policy" in values else ""
        yield Prose(f"{values['kernel']} on {values['gpu'].lower()}{under}")
    yield Prose(
        f"{name}: {gpu.multiprocessors} {one}s, and each has room for {gpu.blocks} blocks, "
        f"{found['warps']['most']} warps, {registers} and {gpu.shared:,} bytes of shared memory"
    )


def _footprints(found: Mapping[str, Any], beside: str) -> Iterator[Part]:
    rows, limits = [], []
    for who in ("computation", "communication"):
        block = found[who]
        rows.append((who, *(f"{block[name]:,}" for name in FOOTPRINT[:4]), f"{block['resident_blocks']}"))
        limits.append(f"{who} by {_LIMITS[block['limit']]}" if block["limit"] else f"{who}: no block fits on this GPU")
    yield Table(_HEADS, rows)
    yield Prose(", ".join(limits), "limited")
    if beside:
        yield Prose(f"communication: {beside} (--comm-threads and similar options change it)")


def _sizes(found: Mapping[str, Any]) -> Iterator[Part]:
    """The dynamic sizes with which so many blocks stay resident, from the most blocks down."""
    windows, entries = ({window["blocks"]: window for window in found[name]} for name in ("windows", "entries"))
    rows = [
        (f"{blocks}", f"{100 * blocks // found['native_blocks']} %", _span(windows, blocks), _span(entries, blocks))
        for blocks in sorted({*windows, *entries}, reverse=True)
    ]
    shown, more = cut(rows, _MOST_SIZES)
    if shown:
        yield Table(_SIZE_HEADS, shown, ())
    if more:
        yield Prose(f"... and {more} more for fewer blocks (--sweep and --json list all)")


def _span(windows: Mapping[int, Mapping[str, int]], blocks: int) -> str:
    window = windows.get(blocks)
    return f"{window['minimum']:,} to {window['maximum']:,}" if window else "-"


def _verdict(explainer: Explainer, values: Mapping[str, Any], found: Mapping[str, Any], more: str) -> Iterator[Part]:
    """What is done, why, by which rule, what it costs, and what would change it."""
    yield Prose(_decision(values, found), "decision")
    yield Prose(f"{found['reason']}: {explainer.sentence(found['reason'])}", "because")
    yield Prose(_rule(found), "rule")
    yield from _shadowed(values, found)
    if found["native_blocks"]:
        yield Prose(_cost(found), "cost")
        if _as_asked(found):
            yield Prose(_as_asked(found), "as asked")
    if found["outside"]:
        yield Prose(f"of overlap windows the launch is left as asked ({found['outside']})", "outside")
    if found["critical"] not in (None, "off") and found["reason"] != "communication":
        yield Prose(
            f"raised on a stream that something waits for (critical: {one_line(found['critical'])})", "priority"
        )
    if more:
        yield Prose(more, "also")
    yield from _helps(found)


def _decision(values: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    size, asked = found["dynamic_shared_memory"], values["asked"]
    if size != asked:
        where = " (in overlap windows)" if found["outside"] else ""
        return f"{decided(found['control'], size, asked)}{where}"
    return f"{found['control']}: launched as asked"


def _rule(found: Mapping[str, Any]) -> str:
    rule = found["rule"]
    if rule is None:
        return "no rule of the policy matches"
    if rule["policy"] is None:
        return ruled(rule)
    if rule["place"] is None:
        return f"built in: {rule['match']} are left alone, before the rule on line {rule['line']}"
    return f"{rule['place']} matches {rule['match']} and asks for {ruled(rule)}"


def _shadowed(values: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Part]:
    asked = values["asked"]
    shown, more = cut([other for other in found["shadowed"] if other["rule"]["place"]], _MOST_SHADOWED)
    for index, other in enumerate(shown):
        rule, size, says = other["rule"], other["dynamic_shared_memory"], other["reason"]
        if size != asked:
            says = f"{decided(other['control'], size, asked)} ({says})"
        text = f"{rule['place']} matches as well: {ruled(rule)}; it would decide: {says}"
        yield Prose(text, _once("shadowed", index))
    if more:
        yield Prose(f"... and {more} more (--sweep --json lists all)", _once("", 1))


def _cost(found: Mapping[str, Any]) -> str:
    warps = found["warps"]
    before = _occupancy(found["native_blocks"], warps["as_asked"], warps["most"])
    if found["native_blocks"] == found["blocks"]:
        return f"nothing: {before}, as before"
    return f"{before} before, {_occupancy(found['blocks'], warps['as_decided'], warps['most'])} after"


def _occupancy(blocks: int, warps: int, most: int) -> str:
    return f"{plural(blocks, 'block')} ({plural(warps, 'warp')}, {100 * warps // most} % of {most})"


def _as_asked(found: Mapping[str, Any]) -> str:
    """Without any change of size."""
    beside, native = found["beside_after_drain"], found["native_blocks"]
    if beside < 0:
        return "communication fits nowhere on this GPU"
    if beside == native:
        return "communication fits beside all of its blocks" if found["control"] in SHAPES else ""
    if beside == 0:
        return "communication waits until a multiprocessor is empty"
    return f"communication fits once {native - beside} of {native} blocks have ended"


def _helps(found: Mapping[str, Any]) -> Iterator[Part]:
    if found["help"] and " would: " not in found["help"]:
        yield Prose(found["help"], "would help")
    shown, more = cut(found["changes"], _MOST_CHANGES)
    for index, change in enumerate(shown):
        ranks = " on all ranks" if change["all_ranks"] else ""
        first = index == 0 and (not found["help"] or " would: " in found["help"])
        yield Prose(f"{change['setting']}{ranks}: {change['does']}", "would help" if first else " ")
    if more:
        yield Prose(f"... and {more} more (--sweep --json lists all)", _once("", 1))
    refused = found["reason"] in ("priority", "below_keep", "capped_without_room", "no_rule") or found[
        "reason"
    ].startswith("no_room_")
    if refused and not shown:
        yield Prose("no known setting, and no smaller block", "would help")


def _once(label: str, index: int) -> str:
    return label if index == 0 else " "
