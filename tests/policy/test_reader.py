"""Files that are no policies at all, texts that nobody would write, and what good ones mean."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyshim.policy import model
from pyshim.policy.document import MAX_BYTES
from pyshim.policy.finding import render
from pyshim.policy.model import HALF, Match, Policy, Rule, Shape
from pyshim.policy.reader import Reading, read_bytes, read_file
from pyshim.policy.values import FAMILIES, UNLIMITED, Range

HEAD = "policy: 1\nname: mine\n"


def read(text: str) -> Reading:
    return read_bytes(text.encode("utf-8"), "mine.yaml")


def rule(match: str, shape: str = "leave", more: str = "") -> Rule:
    reading = read(f"{HEAD}compute:\n  - match: {match}\n    shape: {shape}\n{more}")
    assert reading.policy is not None, render("mine.yaml", reading.source, reading.findings)
    return reading.policy.rules[0]


def codes(reading: Reading) -> list[str]:
    return [finding.code for finding in reading.findings]


def test_every_key_of_the_format_becomes_its_part_of_the_model() -> None:
    reading = read("""\
policy: 1
name: mine
gpu: ["NVIDIA H100*", sm_90]
streams: {raise: {share: 40%}, created_by: [nccl, "librccl.so*"]}
communication:
  kernels: [all, nccl, "*my_reduce*", "deep::exchange"]
  libraries: libmine.so*
compute:
  - match: {kernel: ["*gemm*", "at::native::add"], library: "libcublasLt*", threads: [">=128", "<=256"],
            waves: ">=2.5", resident_blocks: 2}
    shape: {blocks_per_sm: 50%}
    keep_at_least: 25%
    when: overlapping
  - match: {kernel: "*"}
    shape: {dynamic_shared_memory: 96KiB}
    when: always
""")
    first = Match(
        kernels=("*gemm*", "*2at6native3add*"),
        libraries=("libcublasLt*",),
        threads=Range(128, 256),
        waves_percent=Range(250, UNLIMITED),
        resident_blocks=Range(2, 2),
    )
    assert reading.findings == ()
    assert reading.policy == Policy(
        name="mine",
        gpus=("NVIDIA H100*", "sm_90"),
        kernels=("*my_reduce*", "*4deep8exchange*"),
        libraries=("libmine.so*",),
        raise_share=40,
        stream_creators=("libnccl.so*", "librccl.so*"),
        rules=(
            Rule(first, Shape("percent", 50), 25, "overlapping", 9),
            Rule(Match(kernels=("*",)), Shape("bytes", 98304), 0, "always", 14),
        ),
    )


def test_every_other_key_of_the_format_becomes_its_part_of_the_model() -> None:
    reading = read("""\
policy: 1
name: mine
fixed_size: ["*my_staged*", a::b, gemm]
streams: {raise: off, created_by: libmine.so}
environment: {TORCH_NCCL_HIGH_PRIORITY: 1, NCCL_DEBUG: "INFO"}
compute:
  - match: {kernel: [gemm, "*my*"]}
    shape: make_room
  - match: {kernel: norm}
    shape: make_room
    keep_at_least: 25%
""")
    assert codes(reading) == []
    assert reading.policy == Policy(
        name="mine",
        raise_share=0,
        stream_creators=("libmine.so",),
        fixed_size=("*my_staged*", "*1a1b*", "gemm"),
        environment={"TORCH_NCCL_HIGH_PRIORITY": "1", "NCCL_DEBUG": "INFO"},
        rules=(
            Rule(Match(kernels=("*my*",), sets=("gemm",)), Shape("make_room"), 50, "overlapping", 7),
            Rule(Match(sets=("norm",)), Shape("make_room"), 25, "overlapping", 9),
        ),
    )


def test_what_is_left_out_has_its_default() -> None:
    assert read(HEAD).policy == Policy(name="mine", raise_share=HALF)
    only = rule("{threads: 64}")
    assert (only.when, only.keep_at_least, only.match) == ("overlapping", 0, Match(threads=Range(64, 64)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('">=4"', Range(4, UNLIMITED)),
        ('">2"', Range(3, UNLIMITED)),
        ('"<=8"', Range(0, 8)),
        ('"<8"', Range(0, 7)),
        ('"==3"', Range(3, 3)),
        ('">= 4"', Range(4, UNLIMITED)),
        ("3", Range(3, 3)),
        ('[">=4", "<8"]', Range(4, 7)),
        ('["<8", ">=4"]', Range(4, 7)),
    ],
)
def test_a_comparison_is_an_inclusive_range(text: str, expected: Range) -> None:
    assert rule(f"{{resident_blocks: {text}}}").match.resident_blocks == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('">=2"', Range(200, UNLIMITED)),
        ('">2"', Range(201, UNLIMITED)),
        ('"<8"', Range(0, 799)),
        ('"<=0.5"', Range(0, 50)),
        ("1.25", Range(125, 125)),
        ("0.05", Range(5, 5)),
    ],
)
def test_waves_are_hundredths(text: str, expected: Range) -> None:
    assert rule(f"{{waves: {text}}}").match.waves_percent == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4096", 4096),
        ("96KiB", 98304),
        ("96 KiB", 98304),
        ("0.1KiB", None),
        ("232448", 232448),
        ("232449", None),
        ("227KiB", 232448),
        ("228KiB", None),
        ("96kib", None),
        ("96KB", None),
    ],
)
def test_sizes_end_at_what_the_largest_known_gpu_gives_a_block(text: str, expected: int | None) -> None:
    reading = read(f"{HEAD}compute: [{{match: {{kernel: a}}, shape: {{dynamic_shared_memory: {text}}}}}]\n")
    assert (reading.policy.rules[0].shape.value if reading.policy else None) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("my_kernel", "my_kernel"),
        ("a::b", "*1a1b*"),
        ("at::*", "*2at*"),
        ("*::add", "*3add*"),
        ("at::*::add", "*2at*3add*"),
        ("std::sort", "*St4sort*"),
        ("a::std", "*1a3std*"),
        ("(anonymous namespace)::k", "*12_GLOBAL__N_11k*"),
        ("[]]x", "[]]x"),
        ("[!]]x", "[!]]x"),
    ],
)
def test_kernel_patterns(text: str, expected: str) -> None:
    assert rule(f'{{kernel: "{text}"}}').match.kernels == (expected,)


@pytest.mark.parametrize("text", ["[", "a[", "[]", "[!]", "[a]b[c", r"\ud800", r"a\0b", "x" * 1001])
def test_patterns_that_nothing_can_match_as_meant(text: str) -> None:
    assert not read(f'{HEAD}compute: [{{match: {{kernel: "{text}"}}, shape: leave}}]\n').ok


def test_words_that_yaml_would_change_stay_words() -> None:
    words = ("on", "off", "yes", "no", "1e3", "2024-01-01", "null", "0x10")
    assert rule('{kernel: [on, off, yes, no, 1e3, 2024-01-01, "null", 0x10]}').match.kernels == words


def test_a_missing_file(tmp_path: Path) -> None:
    reading = read_file(tmp_path / "none.yaml")
    assert render("none.yaml", "", reading.findings) == (
        "none.yaml: error[missing-file]: no such file\n  = help: overlap policy list names those that ship\n"
    )


def test_a_directory(tmp_path: Path) -> None:
    assert codes(read_file(tmp_path)) == ["not-a-file"]


def test_a_name_that_no_file_can_have() -> None:
    assert codes(read_file(Path("a\0b"))) == ["unreadable"]
    assert codes(read_file(Path("a" * 5000))) == ["unreadable"]


def test_a_file_of_more_than_a_mebibyte_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    path.write_text(HEAD + "#" * MAX_BYTES, encoding="utf-8")
    assert codes(read_file(path)) == ["too-large"]
    path.write_text((HEAD + "#" * MAX_BYTES)[:MAX_BYTES], encoding="utf-8")
    assert codes(read_file(path)) == []


def test_a_byte_order_mark_and_windows_line_ends_are_nothing_special() -> None:
    plain = read(f"{HEAD}gpu: 3\nwen: always\n")
    data = b"\xef\xbb\xbf" + plain.source.replace("\n", "\r\n").encode()
    windows = read_bytes(data, "mine.yaml")
    assert windows.findings == plain.findings
    assert render("f", windows.source, windows.findings) == render("f", plain.source, plain.findings)


def test_a_byte_order_mark_takes_no_column() -> None:
    reading = read_bytes(b"\xef\xbb\xbfwen: 1\npolicy: 1\nname: a\n", "f")
    assert "\n1 | wen: 1\n  | ^^^\n" in render("f", reading.source, reading.findings)


def test_aliases_that_nest_deeper_than_the_file_itself_are_refused() -> None:
    chain = "".join(f"k{i}: &k{i} [*k{i - 1}]\n" for i in range(1, 80))
    assert codes(read(f"k0: &k0 [x]\n{chain}")) == ["too-deep"]


def test_text_that_is_not_utf8_is_shown_by_its_place() -> None:
    finding = read_bytes(b"policy: 1\nname: caf\xe9\n", "f").findings[0]
    assert (finding.code, finding.line, finding.column) == ("encoding", 2, 10)


def test_a_character_that_yaml_does_not_allow_is_shown_by_its_place() -> None:
    finding = read("policy: 1\nname: a\x07b\n").findings[0]
    assert (finding.code, finding.line, finding.column) == ("yaml", 2, 8)


def test_the_caret_stands_below_its_place_whatever_stands_before_it() -> None:
    reading = read(f'{HEAD}gpu: "x" # é\twide 語\ncompute: [{{match: {{kernel: "語"}}, shape: leav}}]\n')
    lines = render("f", reading.source, reading.findings).splitlines()
    source, caret = next((lines[i], lines[i + 1]) for i, line in enumerate(lines) if line.startswith("4 | "))
    assert source[caret.index("^") : caret.rindex("^") + 1] == "leav"


def test_too_many_rules_and_patterns_are_refused_before_they_are_compared() -> None:
    rules = "".join(f"  - {{match: {{kernel: k{i}}}, shape: leave}}\n" for i in range(769))
    assert codes(read(f"{HEAD}compute:\n{rules}")) == ["too-large"]
    patterns = ", ".join(f"k{i}" for i in range(2001))
    assert codes(read(f"{HEAD}compute: [{{match: {{kernel: [{patterns}]}}, shape: leave}}]")) == ["too-large"]


@pytest.mark.parametrize("code", ["size", "value"])
def test_a_warning_alone_leaves_a_policy_and_an_error_does_not(code: str) -> None:
    assert read(f"{HEAD}gpu: NVIDIA Nothing\n").ok
    value = {"size": "{dynamic_shared_memory: 500KiB}", "value": "make_rom"}[code]
    reading = read(f"{HEAD}gpu: NVIDIA Nothing\ncompute: [{{match: {{kernel: a}}, shape: {value}}}]\n")
    assert codes(reading) == ["unknown-gpu", code]
    assert not reading.ok


SCALARS = st.one_of(
    st.text(max_size=8), st.integers(), st.sampled_from(["50%", ">=4", "96KiB", "*", "leave", "a::b", "all"])
)
KEYS = st.sampled_from(sorted({key.name for key in model.KEYS}))
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4))


@settings(max_examples=100)
@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_any_values_under_the_keys_give_a_policy_or_findings(values: dict[str, object]) -> None:
    import yaml

    sound(read(yaml.safe_dump({"policy": 1, "name": "mine", **values}, allow_unicode=True)))


def sound(reading: Reading) -> None:
    """A policy or an error, never both and never neither; and every finding can be shown."""
    assert reading.ok == all(finding.severity != "error" for finding in reading.findings)
    shown = render(reading.file, reading.source, reading.findings)
    shown.encode("utf-8")
    for finding in reading.findings:
        assert finding.line >= 1
        assert finding.column >= 1
        assert len(finding.sentence.splitlines()) == 1


def test_the_families_are_those_that_the_library_knows() -> None:
    table = Path(__file__).resolve().parents[2] / "shim" / "core" / "family.def"
    known = re.findall(r"^(?:FAMILY|LIBRARY)\((\w+),", table.read_text(encoding="ascii"), re.M)
    assert set(FAMILIES) == {"all", *known}
