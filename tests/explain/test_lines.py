"""Many requests: one answer a line, in order, whatever the lines are and however they come."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyshim.explain import request as module
from pyshim.explain.answer import Explainer
from pyshim.explain.kernels import answer_line
from pyshim.explain.request import Lines


def lines_of(explainer: Explainer) -> Lines:
    return Lines(lambda request: answer_line(request, explainer))


RequestOf = Callable[..., dict[str, Any]]
COMMAND = [sys.executable, "-m", "pyshim", "explain", "--stdin", "--json"]


def ask(text: bytes, environment: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(COMMAND, input=text, env=dict(environment), capture_output=True, check=False, timeout=120)


def test_a_hundred_thousand(
    bench: Any, explainer: Explainer, overlap: Any, clean_environment: Mapping[str, str], library: Any
) -> None:
    count = 100_000
    text = bench.lines(count, seed=4)
    done = ask(text.encode(), clean_environment)
    assert (done.returncode, done.stderr) == (0, b"")
    asked, answers = text.splitlines(), done.stdout.decode().splitlines()
    assert len(answers) == count
    for index in range(0, count, 97):
        assert json.loads(answers[index]) == explainer.answer(json.loads(asked[index]))
    for index in (0, 31_415, count - 1):
        options = [f"--{name.replace('_', '-')}={value}" for name, value in json.loads(asked[index]).items()]
        assert json.loads(answers[index]) == json.loads(overlap("explain", "--json", *options).stdout)


def test_a_line_without_communication_is_answered_as_the_options_without_it(
    clean_environment: Mapping[str, str], overlap: Any
) -> None:
    asked = [
        {"gpu": "h100", "threads": 128, "registers": 64},
        {"gpu": "mi250x", "threads": 256, "registers": 128, "dynamic_smem": "16KiB"},
        {"policy": "h100-small-comm", "threads": 128, "registers": 64, "kernel": "gemm"},
    ]
    done = ask("\n".join(map(json.dumps, asked)).encode(), clean_environment)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(asked)
    for request, answer in zip(asked, answers):
        options = [f"--{name.replace('_', '-')}={value}" for name, value in request.items()]
        whole = json.loads(overlap("explain", "--json", *options).stdout)
        assert answer["beside"], answer
        shared = answer.keys() - {"rule"}  # the options say more of the rule
        assert {name: answer[name] for name in shared} == {name: whole[name] for name in shared}


BAD = [
    (b"nonsense", "this is no JSON: "),
    (b"", "the line is empty"),
    (b"  \t", "the line is empty"),
    (b"[]", "a request is an object"),
    (b"1", "a request is an object"),
    (b"null", "a request is an object"),
    (b'"gpu"', "a request is an object"),
    (b'{"gpu": "h100"', "this is no JSON: "),
    (b"\xff\xfe", "this is no JSON: "),
    (b"[" * 100_000, "this is no JSON: "),
    (b'{"threads": ' + b"1" * 5000 + b"}", ""),
    (b"{}", "missing required options: gpu, threads, registers"),
    (b'{"gpu": "h100", "threads": 1, "registers": 1, "comm_threads": 1}', "missing required option: comm_registers"),
    (b'{"gpu": "h100", "threads": -1}', "threads: `-1` is below 0"),
    (b'{"gpu": "h100", "threads": NaN}', "threads: `nan` is not a whole number"),
    (b'{"gpu": "h100", "thread": 1}', "there is no `thread`"),
    (b'{"gpu": "h100", "json": true}', "there is no `json`"),
    (b'{"policy": "no-such", "gpu": "h100", "threads": 1, "registers": 1}', "there is no policy `no-such`"),
    (b'{"policy": "\\ud800/", "gpu": "h100", "threads": 1, "registers": 1}', ""),
]


def test_a_malformed_line_is_answered_and_the_next_one_too(
    explainer: Explainer, request_of: RequestOf, clean_environment: Mapping[str, str]
) -> None:
    good = json.dumps(request_of()).encode()
    text = b"\n".join(part for bad, _ in BAD for part in (bad, good)) + b"\n"
    done = ask(text, clean_environment)
    assert (done.returncode, done.stderr) == (0, b"")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == 2 * len(BAD)
    expected = explainer.answer(request_of())
    for (bad, sentence), wrong, right in zip(BAD, answers[::2], answers[1::2]):
        assert wrong["error"].startswith(sentence) and wrong["error"], bad[:80]
        assert set(wrong) <= {"error", "help"}
        assert right == expected


@settings(max_examples=150)
@given(cuts=st.lists(st.integers(0, 2000), max_size=12), end=st.booleans())
def test_lines_may_come_in_pieces(explainer: Explainer, cuts: list[int], end: bool) -> None:
    request = b'{"gpu": "h100", "threads": 128, "registers": 64, "comm_threads": 288, "comm_registers": 96}'
    text = b"\n".join([request, b"x", b"", request, b'{"gpu": 1}', request]) + (b"\n" if end else b"")
    whole = lines_of(explainer)
    expected = whole.feed(text) + whole.end()
    assert len(expected) == 6
    lines, found, at = lines_of(explainer), [], 0
    for cut in [*sorted(cut for cut in cuts if cut < len(text)), len(text)]:
        found += lines.feed(text[at:cut])
        at = cut
    assert found + lines.end() == expected


def test_a_line_that_never_ends_is_refused_once(explainer: Explainer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST", 1000)
    lines = lines_of(explainer)
    found = [answer for _ in range(10) for answer in lines.feed(b"x" * 600)]
    assert [json.loads(answer)["error"] for answer in found] == ["a line is longer than 1,000 bytes"]
    after = lines.feed(b"x\n{}\n")
    assert [json.loads(answer)["error"][:6] for answer in after] == ["missin"]
    assert lines.end() == []


def test_nothing_asked_nothing_answered(clean_environment: Mapping[str, str], library: Any) -> None:
    done = ask(b"", clean_environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_who_waits_for_an_answer_gets_it(
    request_of: RequestOf, clean_environment: Mapping[str, str], library: Any
) -> None:
    """A program that asks, reads, and asks again: nothing may wait in a buffer."""
    with subprocess.Popen(
        COMMAND, env=dict(clean_environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as child:
        assert child.stdin and child.stdout
        for threads in (32, 64, 128):
            child.stdin.write(json.dumps(request_of(threads=threads)) + "\n")
            child.stdin.flush()
            assert json.loads(child.stdout.readline())["gpu"] == "h100"
        child.stdin.close()
        assert child.wait(timeout=300) == 0


@pytest.mark.parametrize("how", ["closed", "write only"])
def test_stdin_that_cannot_be_read(how: str, clean_environment: Mapping[str, str], library: Any) -> None:
    def prepare() -> None:
        os.close(0)
        if how == "write only":
            os.open(os.devnull, os.O_WRONLY)

    done = subprocess.run(
        COMMAND, env=dict(clean_environment), preexec_fn=prepare, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("overlap: error: stdin cannot be read: ")


def test_a_reader_that_has_seen_enough_is_no_error(
    bench: Any, clean_environment: Mapping[str, str], tmp_path: Any, library: Any
) -> None:
    (tmp_path / "requests").write_text(bench.lines(5000))
    script = f"{' '.join(COMMAND)} <requests | head -n 1 >/dev/null; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script], env=dict(clean_environment), cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("141\n", "")
