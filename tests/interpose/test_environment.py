"""What the environment says is believed only if it is whole; whatever it says, the program runs as it would alone."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Mapping

import pytest
from interposing import BLOCKS, ONE, Done, Runner, same, smallest_size

WORDS = f"ptx=k repeat=2 launch=k,{BLOCKS},256,0"
Tables = Callable[[str], Mapping[str, str]]


def ignored(done: Done, without: Done) -> None:
    """One line, and nothing else."""
    assert (done.status, done.stdout, done.launches) == (without.status, without.stdout, without.launches)
    assert done.stderr.count("\n") == 1, done.stderr
    assert "the policy in OVERLAP_TABLE is ignored: " in done.stderr
    assert done.report["processes"] == []


def text(table: bytes) -> str:
    return base64.b64encode(table).decode("ascii")


def changed(good: bytes, at: int, value: bytes, checksum: bool = True) -> str:
    data = bytearray(good)
    data[at : at + len(value)] = value
    if checksum:
        data[12:16] = zlib.crc32(bytes(data[32:])).to_bytes(4, "little")
    return text(bytes(data))


DAMAGES: dict[str, Callable[[bytes], str]] = {
    "no base64": lambda good: "%%%%",
    "length": lambda good: "AAA",
    "cut text": lambda good: text(good)[:-4],
    "cut": lambda good: text(good[:-3]),
    "longer": lambda good: text(good + b"\0\0\0"),
    "no header": lambda good: text(good[:31]),
    "empty": lambda good: "",
    "magic": lambda good: changed(good, 0, b"\0\0\0\0"),
    "version": lambda good: changed(good, 4, b"\x63\0\0\0"),
    "checksum": lambda good: changed(good, 12, b"\1\2\3\4", checksum=False),
    "policies": lambda good: changed(good, 16, b"\xff\xff\xff\xff"),
    "rules": lambda good: changed(good, 20, b"\xff\xff\xff\x7f"),
    "strings": lambda good: changed(good, 28, b"\xff\xff\xff\xff"),
    "offset": lambda good: changed(good, 32, b"\xff\xff\xff\xff"),
    "span": lambda good: changed(good, 40, b"\xff" * 8),
    "too long": lambda good: "A" * 100000,
    "newline": lambda good: text(good) + "\n",
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_broken_table_is_ignored_with_one_line(name: str, bare: Runner, preloaded: Runner, table_of: Tables) -> None:
    good = base64.b64decode(table_of(ONE)["OVERLAP_TABLE"])
    ignored(preloaded(WORDS, ONE, env={"OVERLAP_TABLE": DAMAGES[name](good)}), bare(WORDS))


def test_other_words_than_off_are_not_off(preloaded: Runner) -> None:
    assert preloaded(WORDS, ONE, env={"OVERLAP_RUN": "on"}).totals["launches"] == 2


def test_a_program_that_overwrites_its_environment_has_its_policy_all_the_same(bare: Runner, preloaded: Runner) -> None:
    """As programs do that write their title over it."""
    words = f"before:environ {WORDS}"
    env = {"SIMGPU_LAUNCHES": ""}
    done = preloaded(words, ONE, env=env)
    same(done, bare(words, env=env))
    assert done.totals["shaped"] == 2


def test_a_child_without_the_environment_is_left_alone(preloaded: Runner) -> None:
    done = preloaded(f"{WORDS} environ exec {WORDS}", ONE, way="dlsym")
    assert done.totals["launches"] == 2


@pytest.mark.parametrize("rank", [{}, {"RANK": "0"}, {"RANK": "junk"}, {"RANK": "99999999999999999999"}, {"RANK": "1"}])
def test_nothing_is_ever_said_on_stdout(rank: dict[str, str], bare: Runner, preloaded: Runner) -> None:
    done = preloaded(WORDS, env=rank)
    assert done.stdout == bare(WORDS).stdout
    assert done.stderr.count("\n") == (rank.get("RANK") == "0")


def test_a_closed_stderr_is_not_written_to(bare: Runner, preloaded: Runner) -> None:
    words = f"before:close=2 {WORDS}"
    done = preloaded(words, env={"RANK": "0"})
    same(done, bare(words))
    assert done.totals["launches"] == 2


def test_a_file_that_took_the_place_of_stderr_gets_no_line_of_ours(preloaded: Runner, tmp_path: object) -> None:
    data = f"{tmp_path}/data"
    done = preloaded(f"before:file=2,{data} {WORDS} error=mine", env={"RANK": "0"})
    assert done.status == 0
    with open(data, encoding="ascii") as file:
        assert file.read() == "mine"


def test_a_socket_that_took_the_place_of_stderr_gets_no_line_of_ours(bare: Runner, preloaded: Runner) -> None:
    words = f"before:socket=2 {WORDS} received error=mine received"
    env = {"RANK": "0", "OVERLAP_TABLE": "broken"}  # which is said at the first use of the driver
    done, without = preloaded(words, env=env), bare(words)
    assert without.stdout.splitlines()[-3:] == ["received: -1", "error: 4", "received: 4"]
    assert done.stdout == without.stdout
    assert done.stderr == ""


def test_the_line_is_said_when_nothing_took_its_place(preloaded: Runner) -> None:
    """The control of the three above."""
    done = preloaded(WORDS, ONE, env={"RANK": "0"})
    assert done.stderr.startswith("overlap: raised no stream (0 of 2 launches), 2 shaped")
    assert done.sizes == [smallest_size(1)] * 2
