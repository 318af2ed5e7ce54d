"""tools/verify/windows.py as a command."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.windows.conservative import CASES
from tests.windows.legal import ended
from tests.windows.operations import NotAProgram, line_of, program_of
from tests.windows.test_checker import CASES as LINES
from tests.windows.test_checker import ROWS, STREAMS

ROOT = Path(__file__).resolve().parents[2]


pytestmark = pytest.mark.usefixtures("built")


@pytest.fixture
def command(python):
    return partial(python, "-m", "tools.verify.windows", cwd=ROOT)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--line", "garbage"), "operation 0, 'garbage'"),
        (("--line", ""), "at least one operation"),
        (("--line", "ns0,1,0,0 o--,0,0,0"), "operation 1, 'o--,0,0,0'"),
        (("--line", "ks0,0,0,0"), "'ks0,0,0,0', cannot be done there"),
        (("--line", "n--,0,0,0"), "needs a stream"),
        (("--line", "es0,0,0,0"), "takes no stream"),
        (("--line", "e--,11,0,0"), "cannot be done there"),
        (("--line", "ns0,1,2,0"), "cannot be done there"),
        *(((option, value), f"'{value}' is not a number from 1") for option in ("--jobs", "--programs")
          for value in ("0", "-5", "x")),
        (("--longest", "0"), "'0' is not a number from 5"),
        (("--longest", "4"), "'4' is not a number from 5"),
        (("--seed", "-1"), "'-1' is not a number from 0"),
        (("--vendor", "amd", "--runtime", "5", "--proc-address"), "HIP 5 has no hipGetProcAddress"),
    ],
)  # fmt: skip
def test_wrong_options_are_one_error(command, arguments: tuple[str, ...], says: str) -> None:
    done = command(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.count("error: ") == 1
    assert "Traceback" not in done.stderr


def test_one_program_by_its_line(command) -> None:
    done = command("--line", "ns0,1,0,0 ns1,1,0,0 cs0,0,0,0 ks1,0,0,0")
    assert done.returncode == 0, done.stderr
    assert "launch communication" in done.stdout
    assert "overlapping=True" in done.stdout


@pytest.mark.parametrize("vendor", ["nvidia", "amd"])
def test_a_graph_that_waits_in_a_process_that_captures_nothing_else(command, vendor: str) -> None:
    """In a process of its own, which no other program has made look into graphs."""
    streams = "ns0,1,0,0 ns1,1,0,0 ns2,1,0,0 e--,0,0,0 "
    done = command(
        "--vendor", vendor, "--line",
        streams + "cs2,0,0,0 rs2,0,0,0 bs0,0,0,0 ws0,0,1,0 Es0,0,0,0 gs1,0,0,0 ks1,0,0,0",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "kernel='k', sequence=1, overlapping=False" in done.stdout


def test_what_a_program_needs_to_end_is_added(command) -> None:
    done = command("--line", "ns0,1,0,0 bs0,0,0,0 cs0,0,0,0")
    assert done.returncode == 0, done.stderr
    assert "end capture" in done.stdout


def test_programs_of_the_other_tests_are_programs() -> None:
    for line in [line for line, _ in ROWS.values()] + [line for lines in LINES.values() for line in lines]:
        program = program_of(STREAMS + line)
        assert ended(program)[: len(program)] == program
        assert line_of(program_of(line_of(program))) == line_of(program)


@pytest.mark.parametrize(
    "line", ["", " ", "k", "ks0", "ks0,0,0", "ks0,0,0,0,0", "ks0,-1,0,0", "sk0,0,0,0", "k?0,0,0,0"]
)
def test_other_lines_are_none(line: str) -> None:
    with pytest.raises(NotAProgram):
        program_of(line)


def test_cases_are_named_as_in_the_documentation(command) -> None:
    done = command("--programs", "3000", "--seed", "1")
    assert done.returncode == 0, done.stdout
    assert "of these wrong: 0" in done.stdout
    assert "unexplained: 0" in done.stdout
    assert f"  case 10 ({CASES['10']}): " in done.stdout
    numbers = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("  case ")]
    assert numbers == sorted(numbers)
    documented = (ROOT / "shim" / "core" / "WINDOWS.md").read_text(encoding="utf-8")
    for case in CASES:
        assert case == "several" or f"\n{case}. **" in documented


@pytest.mark.parametrize("runtime", ["5", "6", "7"])
def test_each_release_of_hip(command, runtime: str) -> None:
    done = command("--vendor", "amd", "--runtime", runtime, "--programs", "400", "--json")
    assert done.returncode == 0, done.stdout
    counts = json.loads(done.stdout)
    assert counts["programs"] == 400
    assert (counts["wrong"], counts["unexplained"]) == (0, 0)
    assert counts["claims"] > 500


@pytest.mark.parametrize("vendor", ["nvidia", "amd"])
def test_streams_that_somebody_waits_for(command, vendor: str) -> None:
    done = command("--critical", "--vendor", vendor, "--programs", "500", "--json")
    assert done.returncode == 0, done.stdout
    counts = json.loads(done.stdout)
    assert (counts["wrong"], counts["not_critical"]) == (0, 0)
    assert counts["critical"] > 200 or vendor == "amd", "HIP raises streams only when they are made"


def test_a_priority_of_the_programs_own_is_kept(command) -> None:
    """Also 0, and also once the stream has been major."""
    large, small = "ks0,0,2,0 ks1,0,0,0 cs0,0,0,0 ", "ks0,0,0,0 ks1,0,2,0 cs0,0,0,0 "
    line = "ns0,1,0,0 ns1,1,0,0 cs0,0,0,0 " + 3 * small + "Ps0,0,0,0 " + 3 * large + 6 * small
    done = command("--critical", "--line", line)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("reason='critical'") == 1, "before the program has set it"


def test_several_is_explained() -> None:
    from tests.windows.compare import Counts
    from tools.verify import windows

    counts = Counts(programs=1, launches=3)
    counts.conservative.update({"several": 1, "10": 1, "2": 1})
    said = windows.told(counts, [], 0).splitlines()
    assert [line.split(" (")[0] for line in said if line.startswith("  ")] == ["  case 2", "  case 10", "  several"]
    assert "more than one of them together" in windows.told(counts, [], 0)


def test_more_jobs_than_programs(command) -> None:
    done = command("--programs", "2", "--jobs", "9", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["programs"] == 2


def test_help_has_defaults_statuses_and_an_example(command) -> None:
    said = command("--help").stdout
    for words in ("default: 100000", "default: 40", "exit status: 0", "--line 'ns0", "tests/windows/operations.py"):
        assert words in said, words
    assert max(map(len, said.splitlines())) <= 82
