"""Policy files that almost are one, and what must be true of whatever the reader makes of any bytes."""

from __future__ import annotations

from pathlib import Path

from pyshim import _native
from pyshim.errors import OverlapError
from pyshim.policy import document, reader
from pyshim.policy.finding import render
from pyshim.policy.model import as_text
from pyshim.policy.table import compile_table, fingerprint
from tests.fuzz.saying import unprintable

ROOT = Path(__file__).resolve().parents[2]
LONGEST = document.MAX_BYTES + 2
_NAME = "a\x1b]0;b\x07\nc\u202e.yaml"  # anybody's folder may be checked
WORDS = (
    "\u202e".encode(), b"\\u202e", b"\\e[2J", b"\\x9b", b"extends: /dev/zero\n", b"extends: a\xc2\x9b.yaml\n",
    b"policy: 1\n", b"name: x\n", b"extends: h100\n", b"streams: {raise: {share: 25%}}\n", b"&a ", b"*a ",
    b"<<: *a\n", b"- ", b"? ", b": ", b"[", b"]", b"{", b"}", b"|\n", b">-\n", b'"\\', b"'", b"%", b"!!",
    b"!<tag:yaml.org,2002:int>", b"---\n", b"...\n", b"\0", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xc2\x85",
    b"\xe2\x80\xa8", b"\t", b"\r", b"\x1b[31m", b"\xed\xa0\x80", b"99999999999999999999", b".inf", b"0x10", b"1e999",
    b"50%", b">=", b"KiB", b"{{" * 40, b"[[" * 200, b"- " * 99, b"\xf3\xa0\x80\x81", b"\\U0001F600", b"compute:\n",
    b"communication: ", b"shape: ", b"when: always", b"match: ", b"kernel: ", b"gemm", b"make_room", b"gpus: ",
    b"streams: ", b"raise: auto\n", b"environment: ", b"created_by: nccl", b"blocks_per_sm: ", b"keep_at_least: ",
    b"waves: ", b"*" * 60,
)  # fmt: skip


def seeds() -> list[bytes]:
    folders = (ROOT / "policies", ROOT / "tests" / "policy")
    found = {str(path): path.read_bytes() for folder in folders for path in sorted(folder.rglob("*.yaml"))}
    cases = (ROOT / "tests" / "policy" / "cases.txt").read_bytes().split(b"\n=== ")
    found.update((str(number), case.partition(b"\n")[2].partition(b"\n=> ")[0]) for number, case in enumerate(cases))
    assert len(found) > 70
    bomb = b"a: &a [x, x]\n" + b"".join(b"%c: &%c [*%c, *%c]\n" % (at + 1, at + 1, at, at) for at in range(97, 121))
    return [*found.values(), bomb, "policy: 1\nname: x\n".encode("utf-16"), b"a" * 100_000]


def read(data: bytes) -> bool:
    """Whether it is a policy: then it compiles, the library believes the table, and `show` prints the same policy."""
    reading = reader.read_bytes(data, str(ROOT / "policies" / _NAME))
    for finding in reading.findings:
        assert finding.line >= 1 and finding.column >= 1 and len(finding.sentence.splitlines()) == 1
    assert (reading.policy is None) == any(finding.severity == "error" for finding in reading.findings)
    said = render(_NAME, reading.source, reading.findings)
    assert not unprintable(said), unprintable(said)
    if reading.policy is None:
        return False
    try:
        table = compile_table([reading.policy])
    except OverlapError:  # too large, one sentence
        return False
    refused = _native.text(_native.library().overlap_table_check(table, len(table)))
    assert not refused, refused
    text = as_text(reading.policy)
    assert not unprintable(text), unprintable(text)
    again = reader.read_bytes(text.encode(), "shown.yaml")
    assert again.policy is not None, (text, again.findings)
    assert fingerprint(again.policy) == fingerprint(reading.policy), text
    return True
