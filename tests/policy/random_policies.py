"""Policies as files, made at random: what most of them say, some mistake it may hold, as hypothesis strategies."""

from __future__ import annotations

from hypothesis import strategies as st

from pyshim.policy import model, values
from pyshim.policy.kernel_sets import SETS

PATTERNS = st.sampled_from(
    ["*gemm*", "a::b", "my_kernel", "[g]emm", "*", "k?x", "*[!a]*", "true", "1e3", 'say "x" \\ ok', "é"]
)
LIBRARIES = st.sampled_from(["libmine.so*", "lib?.so", "libcublasLt.so*", "x y"])
WORD = st.sampled_from


def some(item: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return item | st.lists(item, min_size=1, max_size=3)


def comparisons(decimals: bool = False) -> st.SearchStrategy[object]:
    numbers = st.sampled_from(["1", "2", "32"]) | st.integers(1, 500).map(str) | st.just("99999999999999999")
    if decimals:
        numbers |= st.integers(1, 999).map(lambda hundredths: f"{hundredths / 100:.2f}")
    one = st.builds(lambda sign, number: f"{sign}{number}", WORD([">=", ">", "<=", "<", "==", ""]), numbers)
    low, high = numbers.map(lambda number: f">={number}"), numbers.map(lambda number: f"<={number}")
    return one | st.tuples(low, high).map(list)


SIZES = st.integers(1, 227 * 1024) | st.integers(1, 227).map(lambda kibibytes: f"{kibibytes}KiB")
VALUES = st.integers(0, 10**6) | st.sampled_from(["Ring;Tree", "true", "", "a: b", "0x10", "#x", "yes", "50%", "null"])
VARIABLES = st.dictionaries(WORD(["A", "B_1", "NCCL_DEBUG", "y"]), VALUES.filter(lambda value: value != ""), max_size=3)
MATCH = st.fixed_dictionaries(
    {},
    optional={
        "kernel": some(PATTERNS | WORD([*SETS])),
        "library": some(LIBRARIES),
        "blocks": comparisons(),
        "threads": comparisons(),
        "waves": comparisons(decimals=True),
        "resident_blocks": comparisons(),
    },
)
SHAPE = (
    WORD(values.SHAPES)
    | st.integers(1, 40).map(lambda blocks: {"blocks_per_sm": blocks})
    | st.integers(1, 100).map(lambda percent: {"blocks_per_sm": f"{percent}%"})
    | SIZES.map(lambda size: {"dynamic_shared_memory": size})
)
RULE: st.SearchStrategy[dict[str, object]] = st.fixed_dictionaries(
    {"match": MATCH, "shape": SHAPE},
    optional={
        "keep_at_least": st.integers(1, 100).map(lambda percent: f"{percent}%"),
        "when": WORD(values.WHENS),
    },
)
SHARE = st.integers(1, 100).map(lambda percent: {"share": f"{percent}%"})
STREAMS = st.fixed_dictionaries(
    {}, optional={"raise": WORD(tuple(model.RAISES)) | SHARE, "created_by": some(LIBRARIES | WORD(["nccl", "rccl"]))}
)
COMMUNICATION = st.fixed_dictionaries(
    {},
    optional={
        "kernels": some(PATTERNS | WORD(values.FAMILIES)),
        "libraries": some(LIBRARIES),
    },
)
POLICIES = st.fixed_dictionaries(
    {"policy": st.just(1), "name": WORD(["mine", "a.b-c", 12])},
    optional={
        "gpu": some(WORD(["NVIDIA H100*", "sm_90", "gfx90a", "*"])),
        "fixed_size": some(PATTERNS | WORD([*SETS])),
        "streams": STREAMS,
        "environment": VARIABLES,
        "communication": COMMUNICATION,
        "compute": st.lists(RULE, max_size=4),
    },
)
