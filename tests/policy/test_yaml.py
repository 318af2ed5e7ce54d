"""What YAML offers besides mappings and lists: merges, several documents, and files made to keep a reader busy."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pyshim.policy.document import MAX_BYTES
from pyshim.policy.reader import Reading, read_bytes
from pyshim.policy.table import fingerprint

ROOT = Path(__file__).resolve().parents[2]
HEAD = "policy: 1\nname: mine\n"
MERGES = {
    "one": """\
  - &usual {match: {kernel: a}, shape: make_room, when: always}
  - <<: *usual
    match: {kernel: b}
""",
    "own keys stand over what is merged, wherever `<<` stands": """\
  - &usual {match: &small {kernel: a, waves: ">=4"}, shape: make_room, when: always}
  - when: overlapping
    <<: *usual
    match: {waves: ">=2", <<: *small}
""",
    "of several the first stands over the second": """\
  - &one {match: {kernel: a}, shape: leave}
  - &two {match: {kernel: b}, shape: make_room, keep_at_least: 25%, when: always}
  - <<: [*one, *two]
    match: {kernel: c}
""",
    "merges in merges": """\
  - &one {match: {kernel: a}, shape: make_room}
  - &two
    <<: *one
    match: {kernel: b}
    when: always
  - <<: *two
    match: {kernel: c}
    keep_at_least: 30%
""",
    "an empty one": """\
  - {<<: {}, match: {kernel: a}, shape: leave}
""",
}

# PyYAML 6.0.4 merges a sequence the other way round; the first stands by https://yaml.org/type/merge.html.
WRITTEN_OUT = {
    "of several the first stands over the second": """\
  - {match: {kernel: a}, shape: leave}
  - {match: {kernel: b}, shape: make_room, keep_at_least: 25%, when: always}
  - {match: {kernel: c}, shape: leave, keep_at_least: 25%, when: always}
""",
}


def read(text: str) -> Reading:
    return read_bytes(text.encode(), "mine.yaml")


@pytest.mark.parametrize("what", MERGES)
def test_a_merge_means_what_yaml_says(what: str) -> None:
    """The same policy without merges, as PyYAML or we write it out, compiles to the same."""
    text = f"{HEAD}compute:\n{MERGES[what]}"
    merged = read(text)
    written = WRITTEN_OUT.get(what)
    plain = read(
        f"{HEAD}compute:\n{written}" if written else yaml.safe_dump(yaml.safe_load(text), default_flow_style=True)
    )
    assert (merged.findings, plain.findings) == ((), ())
    assert merged.policy and plain.policy
    assert "<<" not in plain.source
    assert fingerprint(merged.policy) == fingerprint(plain.policy)


def test_variables_merge_too() -> None:
    reading = read(f"{HEAD}environment: {{<<: {{C: 3, D: 4}}, C: 5}}\n")
    assert reading.policy and reading.policy.environment == {"C": "5", "D": "4"}


def test_a_mistake_that_is_merged_is_told_once_where_it_stands() -> None:
    rules = "".join(f"  - {{<<: *usual, match: {{kernel: k{i}}}}}\n" for i in range(5))
    reading = read(f"{HEAD}compute:\n  - &usual {{match: {{kernel: a}}, shape: leav, wen: always}}\n{rules}")
    assert [(finding.code, finding.line) for finding in reading.findings] == [("value", 4), ("unknown-key", 4)]


def test_a_key_is_missing_only_if_no_merge_brings_it() -> None:
    reading = read(f"{HEAD}compute:\n  - &usual {{match: {{kernel: a}}, shape: leave}}\n  - {{<<: {{when: always}}}}\n")
    assert [finding.sentence for finding in reading.findings] == ["a rule has no `match`", "a rule has no `shape`"]


def bomb(levels: int, width: int, merge: bool) -> str:
    """Each level holds the one before it several times."""
    lines = ["- &a0 {k0: x}" if merge else "- &a0 [x]"]
    for level in range(1, levels):
        names = ", ".join([f"*a{level - 1}"] * width)
        lines.append(f"- &a{level} {{<<: [{names}]}}" if merge else f"- &a{level} [{names}]")
    return f"{HEAD}compute:\n" + "\n".join(lines) + "\n"


def wild_rules() -> str:
    """As many patterns as are taken, each of which may or may not cover each other one."""
    rules = []
    for index in range(400):
        names = ", ".join(f'"*{"ab" * 8}{index}*{"a*" * 20}{other}*"' for other in range(5))
        rules.append(f"  - {{match: {{kernel: [{names}]}}, shape: leave}}\n")
    return f"{HEAD}compute:\n{''.join(rules)}"


HOSTILE = {
    "alias bomb": (bomb(40, 20, merge=False), "too-large"),
    "merge bomb": (bomb(40, 20, merge=True), "too-large"),
    "a tower of merges": (bomb(48, 1, merge=True), ""),
    "deep": (HEAD + "gpu: " + "[" * 500_000, "too-deep"),
    "deep blocks": (HEAD + "".join(" " * i + "a:\n" for i in range(1000)), ""),
    "large": (HEAD + "#" * MAX_BYTES, "too-large"),
    "many keys": (HEAD + "".join(f"k{i}: 1\n" for i in range(60_000)), ""),
    "one long line": (HEAD + "gpu: " + "x" * 900_000, "pattern"),
    "many documents": (HEAD + "---\na\n" * 150_000, "several-documents"),
    "many anchors": (HEAD + "gpu: [" + ", ".join(f"&a{i} x" for i in range(60_000)) + "]", ""),
    "a quote that never ends": (HEAD + 'gpu: "' + "\\n" * 400_000, "yaml"),
    "patterns that look like each other": (wild_rules(), "too-large"),
}


# Each takes less than a second of a processor; how long that is depends on what else runs.
SECONDS = 30
MEMORY = 1 << 30


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_is_answered_in_bounded_time_and_memory(
    what: str, tmp_path: Path, clean_environment: dict[str, str]
) -> None:
    text, code = HOSTILE[what]
    path = tmp_path / "hostile.yaml"
    path.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pyshim", "policy", "check", str(path)],
        env=clean_environment, capture_output=True, text=True, timeout=300, check=False, preexec_fn=limited,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert done.stderr == ""
    assert f"error[{code}" in done.stdout
