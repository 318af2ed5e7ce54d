"""What was done with each kernel, and by each rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pyshim.html import draw
from pyshim.html.table import NAME, NUMBER, PICTURE, WORDS, Cell, Content, table
from pyshim.html.tree import Child, Element, element
from pyshim.stats.page import sentences

Data = Mapping[str, Any]
Columns = dict[str, tuple[str, Callable[[Data], Content]]]  # by head: what it holds, and the cell of a row
_KERNELS = 30
_LEGEND = (
    ("shaped", "shaped"),
    ("raised", "raised"),
    ("window", "in an overlap window, left alone"),
    ("alone", "left alone"),
)


def kernels(data: Data) -> Child:
    """Those that were launched most."""
    every = data["kernels"]
    if not every:
        return None
    rest = f"The {_KERNELS} of {len(every):,} that were launched most." if len(every) > _KERNELS else None
    several = len({kernel["device_name"] for kernel in every}) > 1
    columns: Columns = {
        "kernel": (NAME, lambda kernel: Cell(_kernel(kernel, several), kernel["plain"] or kernel["kernel"])),
        "rule": (WORDS, lambda kernel: _rule(kernel["rule"])),
        **_counted(every),
        "raised": (NUMBER, lambda kernel: kernel["raised"]),
        **({"critical": (NUMBER, _critical)} if any(_critical(kernel) for kernel in every) else {}),
        "most often": (WORDS, lambda kernel: _why(kernel["reasons"])),
    }
    return [
        element("h2", "Kernels"),
        element("p", rest, class_="quiet") if rest else None,
        draw.legend(_LEGEND),
        _table(columns, every[:_KERNELS]),
    ]


def rules(data: Data) -> Child:
    every = data["rules"]
    if not every:
        return None
    columns: Columns = {
        "rule": (WORDS, lambda use: Cell(_rule(use["rule"]), f"{_file(use['rule'])}:{use['rule']['line']:08}")),
        "shape": (WORDS, lambda use: element("code", use["rule"]["shape"])),
        **_counted(every),
        "kernels": (NUMBER, lambda use: use["kernels"]),
        "most often": (WORDS, _acted),
    }
    return [element("h2", "Rules"), draw.legend(_LEGEND), _table(columns, every)]


def _counted(every: Sequence[Data]) -> Columns:
    most = max(counted["launches"] for counted in every) or 1
    columns: Columns = {
        "launches": (NUMBER, lambda counted: counted["launches"]),
        "how many of them": (PICTURE, lambda counted: Cell(_split(counted, most), counted["shaped"])),
        "shaped": (NUMBER, lambda counted: counted["shaped"]),
        "in window": (NUMBER, lambda counted: "" if counted["in_window"] is None else counted["in_window"]),
    }
    if any(counted["refused"] for counted in every):
        columns["refused"] = NUMBER, lambda counted: counted["refused"]
    return columns


def _table(columns: Columns, every: Iterable[Data]) -> Element:
    kinds = {head: kind for head, (kind, _) in columns.items()}
    return table(list(columns), [[cell(counted) for _, cell in columns.values()] for counted in every], kinds)


def _critical(counted: Data) -> int:
    """Return the launches of computation that were raised with their stream."""
    return int(counted["reasons"].get("critical", 0))


def _split(counted: Data, most: int) -> Element:
    launches, shaped = counted["launches"], counted["shaped"]
    raised = int(counted.get("raised", 0)) + _critical(counted)
    window = max(0, min((counted["in_window"] or 0) - shaped, launches - shaped - raised))
    values = (shaped, raised, window, launches - shaped - raised - window)
    parts = [draw.Part(value, kind, f"{words}: {value:,}") for value, (kind, words) in zip(values, _LEGEND)]
    said = ", ".join(part.title for part in parts if part.value > 0)
    return draw.bar(parts, most, said)


def _kernel(kernel: Data, several: bool) -> Child:
    plain, full = kernel["plain"] or kernel["kernel"], kernel["kernel"]
    if not full:
        return element("span", "not known by name", class_="quiet")
    place = [kernel["library"], kernel["device_name"] if several else "", _footprint(kernel)]
    return [
        element("code", plain, class_="cut", title=plain),
        element("small", element("code", full), class_="cut", title=full) if full != plain else None,
        element("small", ", ".join(filter(None, place))),
    ]


def _footprint(kernel: Data) -> str:
    takes = kernel["footprint"]
    if not takes["threads"]:
        return ""
    bytes_of = f"{takes['static_shared_memory']:,} + {takes['dynamic_shared_memory']:,} B"
    return f"{takes['threads']:,} threads, {takes['registers']:,} registers, {bytes_of}"


def _why(reasons: Mapping[str, int]) -> Child:
    if not reasons:
        return ""
    most = max(reasons, key=lambda name: reasons[name])
    more = f" and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    said = "; ".join(f"{name} {count:,}: {sentences().get(name, '')}" for name, count in _sorted(reasons))
    return element("span", element("code", most), more, title=said)


def _sorted(reasons: Mapping[str, int]) -> Iterable[tuple[str, int]]:
    return sorted(reasons.items(), key=lambda item: -item[1])


def _rule(rule: Data | None) -> Child:
    return element("code", f"{_file(rule)}:{rule['line']}") if rule else ""


def _file(rule: Data) -> str:
    """The file that has the rule's line."""
    return str(rule.get("file") or rule["policy"])


def _acted(use: Data) -> Child:
    if use["inert"]:
        return element("span", f"only under {use['when_dispatch']}", class_="badge")
    if use["unsure"]:
        return element("span", "not known: its launches may be among those without a rule", class_="badge")
    if not use["matched"]:
        return element("span", "never matched", class_="badge warn")
    return [_why(use["reasons"]), " ", None if use["acted"] else element("span", "never acted", class_="badge warn")]
