"""A survey as tables for people, one screen, and as JSON, everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from pyshim.explain.answer import SHAPES
from pyshim.explain.beside import Block
from pyshim.explain.binaries import readable
from pyshim.explain.parts import Part, Prose, Table, apart, cut
from pyshim.explain.survey import COMMUNICATES, NO_THREADS, Answer, Group, Survey

# What reasons are counted as, each in the first column that names it; the last one takes the rest.
COLUMNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("as is", ("room_already", "entry_already"), "communication fits beside it, or once one block has ended"),
    ("window", ("shaped",), "with more dynamic shared memory, as the rule asks, communication fits"),
    ("too few", ("below_keep",), "a size makes room, but fewer blocks than keep_at_least would stay resident"),
    ("later", ("priority",), "no size makes room; communication fits after some of the kernel's blocks have ended"),
    ("registers", ("no_room_registers",), "never beside communication, because of registers"),
    ("memory", ("no_room_shared_memory",), "never beside communication, because of shared memory"),
    ("capped", ("capped_without_room",), "capped as the rule asks, and communication still does not fit"),
    ("rest", (), "warps, block slots, what cannot be launched, what the policy's rule leaves (--json lists them)"),
)
_COMMUNICATION_HEADS = ("", "communication, one block", "threads", "registers", "static", "dynamic")
_SET_HEADS = ("GPU", "beside", "of these", "kernels", "as is", "window", "too few", "later", "rest")
_MOST_KERNELS, _MOST_WITHOUT_PATTERN = 24, 12  # rows
_MOST_SETS = 3
_FIRST = 4  # columns that stand alone there, too


def screen(survey: Survey) -> Iterator[Part]:
    heads, rows = counts(survey)
    return apart(
        _headline(survey),
        [Table(_COMMUNICATION_HEADS, communication(survey), (0, 1))],
        [Table(heads, rows, (0, 1))] if rows else [],
        [Table(_SET_HEADS, sets(survey), (0, 1, 2))] if sets(survey) else [],
        _kernels(survey),
        [*_legend(survey), *_notes(survey)],
    )


def letters(survey: Survey) -> dict[Block, str]:
    """A short name for each block of communication."""
    blocks = dict.fromkeys(group.beside for group in survey.groups)
    return {block: chr(ord("A") + index) for index, block in enumerate(blocks)}


def _headline(survey: Survey) -> Iterator[Part]:
    files = survey.files[0] if len(survey.files) == 1 else f"{len(survey.files):,} files"
    yield Prose(f"kernels of {files}; rule: {survey.rule}; launches of many waves, in an overlap window")


def communication(survey: Survey) -> list[Sequence[str]]:
    """Rows below COMMUNICATION_HEADS."""
    return [
        (letter, block.name, *(f"{number:,}" for number in block.numbers[:4]))
        for block, letter in letters(survey).items()
    ]


def counts(survey: Survey) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Heads and rows; columns without a kernel are left out."""
    names = letters(survey)
    if not _all_reasons(survey):
        return (), []
    total = _numbers(_all_reasons(survey))
    shown = [index for index, (name, _, _) in enumerate(COLUMNS) if total[index] or name == "window"]
    rows: list[Sequence[str]] = []
    for group in survey.groups:
        reasons = group.reasons()
        numbers = [sum(reasons.values()), *(_numbers(reasons)[index] for index in shown)]
        rows.append((group.gpu.key, names[group.beside], *(f"{number:,}" for number in numbers)))
    return ("GPU", "beside", "kernels", *(COLUMNS[index][0] for index in shown)), rows


def sets(survey: Survey) -> list[Sequence[str]]:
    """Rows below SET_HEADS: the commonest kinds of kernels, where there are several."""
    names = letters(survey)
    rows: list[Sequence[str]] = []
    for group in (group for group in survey.groups if len(group.sets()) > 1):
        for word, number in group.sets()[:_MOST_SETS]:
            numbers = _numbers(group.reasons(word))
            said = (number, *numbers[:_FIRST], sum(numbers[_FIRST:]))
            rows.append((group.gpu.key, names[group.beside], word, *(f"{count:,}" for count in said)))
    return rows


def _legend(survey: Survey) -> Iterator[Part]:
    """What the columns that are not empty mean."""
    for (name, _, meaning), number in zip(COLUMNS, _numbers(_all_reasons(survey))):
        if number:
            yield Prose(meaning, name)


def _notes(survey: Survey) -> Iterator[Part]:
    """Yield the kernels and images that were left out."""
    groups = {group.gpu.key: group for group in survey.groups}.values()
    for reason, said in (
        (COMMUNICATES, "that are communication, and never shaped"),
        (NO_THREADS, "without a launch bound, which --threads T counts, too"),
    ):
        left = [f"{group.left_out(reason):,} on {group.gpu.key}" for group in groups if group.left_out(reason)]
        if left:
            yield Prose(f"kernels {said}: {', '.join(left)}")
    if survey.other_images:
        yield Prose(f"no selected GPU runs the images for {', '.join(survey.other_images)}")


def _kernels(survey: Survey) -> Iterator[Part]:
    """What they take, those of one name and footprint once; and where there is one GPU, what is decided about each."""
    one_gpu = len({group.gpu for group in survey.groups}) == 1
    names = letters(survey)
    rows: Counter[tuple[str, ...]] = Counter()
    for group in survey.groups if one_gpu else _first_of_each(survey.groups):
        for answer in group.answers:
            about: tuple[str, ...] = (readable(answer.kernel.footprint.kernel), *_takes(answer))
            if one_gpu:
                about += (*([names[group.beside]] if len(names) > 1 else []), decision(answer))
            rows[about if one_gpu else (answer.kernel.footprint.architecture, *about)] += 1
    shown, more = cut(
        [(f"{number:,}", *row) for row, number in rows.most_common()],
        _MOST_KERNELS if survey.pattern else _MOST_WITHOUT_PATTERN,
    )
    footprint = ("kernel", "threads", "regs", "static")
    if not one_gpu:
        yield Table(("", "for", *footprint), shown, (1, 2))
    elif len(names) > 1:
        yield Table(("", *footprint, "beside", "decision"), shown, (1, 5, 6))
    else:
        yield Table(("", *footprint, "decision"), shown, (1, 5))
    if more:
        yield Prose(f"... and {more:,} more such rows: --kernel PATTERN and --gpu G leave fewer, --json lists all")


def _first_of_each(groups: Sequence[Group]) -> Iterator[Group]:
    """One for each architecture of images: the footprints of others are the same."""
    seen: set[str] = set()
    for group in groups:
        images = {answer.kernel.footprint.architecture for answer in group.answers}
        if not images <= seen:
            seen |= images
            yield group


def as_json(survey: Survey) -> dict[str, Any]:
    names = letters(survey)
    return {
        "files": survey.files,
        "rule": survey.rule,
        "communication": {letter: _block(block) for block, letter in names.items()},
        "groups": [
            {
                "gpu": group.gpu.key,
                "architecture": group.gpu.architecture,
                "beside": names[group.beside],
                "kernels": sum(group.reasons().values()),
                "reasons": dict(group.reasons()),
                "sets": {word: dict(group.reasons(word)) for word, _ in group.sets()},
                "communication_kernels": group.left_out(COMMUNICATES),
                "without_threads": group.left_out(NO_THREADS),
                "answers": [_answer(answer) for answer in group.answers],
            }
            for group in survey.groups
        ],
        "other_images": survey.other_images,
    }


def _all_reasons(survey: Survey) -> Counter[str]:
    return sum((group.reasons() for group in survey.groups), Counter())


def _numbers(reasons: Counter[str]) -> list[int]:
    named = [sum(reasons[reason] for reason in own) for _, own, _ in COLUMNS[:-1]]
    return [*named, sum(reasons.values()) - sum(named)]


def decision(answer: Answer) -> str:
    found = answer.decision
    if found.control in SHAPES:
        return f"{found.control}: {found.dynamic:,} bytes, {found.blocks} of {found.native} stay"
    said = {COMMUNICATES: "communication: never shaped", NO_THREADS: "no launch bound: --threads T"}
    return said.get(found.reason, found.reason)


def _takes(answer: Answer) -> tuple[str, ...]:
    footprint = answer.kernel.footprint
    threads = f"{answer.threads:,}" if answer.threads else "?"
    return threads, f"{footprint.registers:,}", f"{footprint.static_shared_memory:,}"


def _block(block: Block) -> dict[str, Any]:
    names = ("threads", "registers", "static_shared_memory", "dynamic_shared_memory", "barriers", "scalar_registers")
    return {"name": block.name, **dict(zip(names, block.numbers))}


def _answer(answer: Answer) -> dict[str, Any]:
    footprint, decision = answer.kernel.footprint, answer.decision
    return {
        "kernel": footprint.kernel,
        "file": answer.kernel.file,
        "architecture": footprint.architecture,
        "set": answer.set,
        "threads": answer.threads or None,
        "registers": footprint.registers,
        "static_shared_memory": footprint.static_shared_memory,
        "barriers": footprint.barriers,
        "scalar_registers": footprint.scalars,
        "control": decision.control,
        "reason": decision.reason,
        "dynamic_shared_memory": decision.dynamic,
        "blocks": decision.blocks,
        "native_blocks": decision.native,
    }
