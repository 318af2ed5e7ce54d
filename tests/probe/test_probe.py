"""`overlap probe` from outside: simulated GPUs of every rule, drivers that hang, crash and refuse, and what overlap-run
makes of the answer."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable

import pytest

from pyshim import _native
from pyshim.cli import probe as probe_command
from pyshim.doctor import gpus
from pyshim.doctor.machine import Machine
from pyshim.probe import ask

RULES = ("hold", "drain", "backfill")
SLICE = {"SIMGPU_MULTIPROCESSORS": "16"}  # so that a grid is small: a test takes a third of a second
Probe = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def probe(overlap: Any, cache: Path) -> Probe:
    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        done: subprocess.CompletedProcess[str] = overlap(
            "probe", *arguments, env={"XDG_CACHE_HOME": str(cache), **environment}
        )
        return done

    return run


def kept(cache: Path) -> list[Path]:
    return sorted(cache.rglob("*.json"))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("gpu", ["a40", "a100", "h100", "h200", "b200", "l40s"])
def test_every_gpu_under_every_rule(gpu: str, rule: str, probe: Probe, cache: Path) -> None:
    done = probe("--simulate", f"{gpu}:{rule}", "--json", **SLICE)
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["rule"], answer["why"]) == (0, rule, None)
    assert answer["counts"][rule] >= 18 and answer["trials"] == sum(answer["counts"].values()) == 20
    assert (answer["driver"], answer["simulated"], answer["others"]) == (f"simulated {rule}", True, [])
    (file,) = kept(cache)
    found = json.loads(file.read_text())
    assert (str(file), found["rule"], found["gpu"]) == (answer["kept"], rule, answer["gpu"])
    assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700


def test_a_whole_gpu_with_the_carveout_of_a_real_one(probe: Probe) -> None:
    """In about two seconds, most of which the simulation takes."""
    done = probe("--simulate", "h200:hold", "--json", SIMGPU_CARVEOUT="measured")
    assert json.loads(done.stdout)["rule"] == "hold"
    assert json.loads(done.stdout)["multiprocessors"] == 132


def test_what_is_said(probe: Probe, cache: Path) -> None:
    done = probe("--simulate", "h100:backfill", **SLICE)
    first, second, third = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert first.startswith("GPU 0 (simulated NVIDIA H100 80GB HBM3): backfill: while a raised block ")
    assert first.endswith("; 20 of 20 trials say so")
    assert second.startswith("for policies: ") and "when_dispatch: backfill" in second
    assert str(kept(cache)[0]) in third and "dispatch: unknown" in third


def test_gpus_of_one_name_are_asked_once_and_others_each(probe: Probe, cache: Path) -> None:
    several = {"SIMGPU": "h100+a40:backfill,4", "LD_LIBRARY_PATH": str(_native.SIMULATED_DRIVER.parent), **SLICE}
    done = probe("--json", **several)
    answer = json.loads(done.stdout)
    assert [(one["index"], one["rule"]) for one in (answer, *answer["others"])] == [(0, "backfill"), (1, "backfill")]
    assert len(kept(cache)) == 2
    assert json.loads(probe("--json", "--device", "3", **several).stdout)["gpu"] == "NVIDIA A40"
    wrong = probe("--device", "4", **several)
    assert wrong.returncode == 2 and "there are 4: 0 to 3" in wrong.stderr


def test_variables_that_a_program_needs_do_not_disturb_it(probe: Probe, tmp_path: Path) -> None:
    costs = tmp_path / "costs.yaml"
    costs.write_text('- {kernel: "*", block_us: 1, spread: 0, gain: 1}\n')
    disturbing = {"CUDA_LAUNCH_BLOCKING": "1", "SIMGPU_COSTS": str(costs), "LD_PRELOAD": str(_native.SHIM)}
    done = probe("--simulate", "a100:drain", "--json", **SLICE, **disturbing)
    assert json.loads(done.stdout)["rule"] == "drain"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--simulate", "h100:fill"), "no dispatch rule is called 'fill'"),
        (("--simulate", "mi250x"), "HIP knows no priority of a launch"),
        (("--limit", "0"), "--limit 0"),
        (("--device", "x"), "invalid int"),
        (("now",), "unrecognized arguments"),
    ],
)
def test_usage(arguments: tuple[str, ...], words: str, probe: Probe, cache: Path) -> None:
    done = probe(*arguments)
    assert (done.returncode, done.stdout) == (2, "") and words in done.stderr
    assert not cache.exists()


def test_a_machine_without_a_driver(probe: Probe, cache: Path) -> None:
    if os.path.exists("/proc/driver/nvidia/version"):
        pytest.skip("there is a driver")
    done = probe()
    assert (done.returncode, done.stdout) == (1, "")
    assert "no driver of NVIDIA" in done.stderr and "overlap probe --simulate" in done.stderr
    assert not cache.exists()


# ---- drivers that do not do what they should ----

STUB = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void hang(void) {
    const char *path = getenv("STUB_PID");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) {
        fprintf(file, "%d\\n", (int)getpid());
        fclose(file);
    }
    for (;;) pause();
}
int cuInit(unsigned f) {
    if (!strcmp(getenv("STUB"), "hang at once")) hang();
    return (void)f, 0;
}
int cuGetErrorName(int c, const char **n) { return (void)c, *n = "CUDA_ERROR_OF_THE_STUB", 0; }
int cuDriverGetVersion(int *v) { return *v = 13000, 0; }
int cuDeviceGetCount(int *n) { return *n = 1, 0; }
int cuDeviceGet(int *d, int i) { return *d = i, 0; }
int cuDeviceGetName(char *n, int s, int d) { return (void)d, strncpy(n, "NVIDIA Stub", (size_t)s), 0; }
int cuDeviceTotalMem_v2(size_t *b, int d) { return (void)d, *b = 1 << 30, 0; }
int cuDeviceGetPCIBusId(char *n, int s, int d) { return (void)d, strncpy(n, "0000:01:00.0", (size_t)s), 0; }
int cuDeviceGetAttribute(int *v, int a, int d) {
    (void)d;
    *v = a == 39 ? 2048 : a == 78 ? 1 : a == 81 ? 102400 : a == 97 ? atoi(getenv("STUB_OPTIN")) : a == 111 ? 1024 : 8;
    return 0;
}
int cuDevicePrimaryCtxRetain(void **c, int d) {
    const char *how = getenv("STUB");
    (void)d;
    *c = 0;
    if (!strcmp(how, "hang")) hang();
    if (!strcmp(how, "crash")) abort();
    return atoi(how);
}
int cuCtxSetCurrent(void *c) { return (void)c, 0; }
int cuCtxGetStreamPriorityRange(int *l, int *g) { return *l = 0, *g = atoi(getenv("STUB_GREATEST")), 0; }
"""


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("stub")
    (folder / "stub.c").write_text(STUB)
    compiler = shlex.split(os.environ.get("CC", "cc"))
    command = [*compiler, "-shared", "-fPIC", str(folder / "stub.c"), "-o", str(folder / "libcuda.so.1")]
    subprocess.run(command, check=True)
    return {"LD_LIBRARY_PATH": str(folder), "STUB": "0", "STUB_GREATEST": "-5", "STUB_OPTIN": "101376"}


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"STUB": "crash"}, "died of SIGABRT"),
        ({"STUB": "46"}, "cuDevicePrimaryCtxRetain: error 46 (CUDA_ERROR_OF_THE_STUB)"),
        ({"STUB_GREATEST": "0"}, "it knows no priority of streams"),
        ({"STUB_OPTIN": "49152"}, "no block can take a multiprocessor for itself"),
        ({}, "cuModuleLoadData"),  # which it does not have
    ],
    ids=["crash", "exclusive", "no priorities", "no whole multiprocessor", "no function"],
)
def test_a_driver_that_cannot_answer(
    how: dict[str, str], words: str, probe: Probe, stub: dict[str, str], cache: Path
) -> None:
    done = probe("--json", **{**stub, **how})
    answer = json.loads(done.stdout)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.startswith("overlap: GPU 0 (NVIDIA Stub): cannot tell: ") and "overlap: help: " in done.stderr
    assert (answer["rule"], answer["kept"]) == (None, None) and words in answer["why"]
    assert not cache.exists()


def test_a_driver_that_hangs_is_ended(probe: Probe, stub: dict[str, str], cache: Path) -> None:
    started = time.monotonic()
    done = probe("--limit", "0.5", **{**stub, "STUB": "hang"})
    assert time.monotonic() - started < 50, "the default is 60"
    assert done.returncode == 1 and "was killed: it did not answer in time" in done.stderr
    assert "overlap: help: give it longer than --limit 0.5 (default: 60)" in done.stderr
    assert "administrator" not in done.stderr
    assert not cache.exists()


def test_a_limit_that_is_too_short_blames_neither_machine_nor_driver(probe: Probe) -> None:
    done = probe("--simulate", "h100", "--limit", "0.1")
    if done.returncode:  # 0.1 s may be enough
        assert "administrator" not in done.stderr
        assert "help: give it longer than --limit 0.1" in done.stderr or "higher --limit" in done.stderr


def test_a_driver_that_crashes_is_not_said_to_hang(probe: Probe, stub: dict[str, str]) -> None:
    done = probe(**{**stub, "STUB": "crash"})
    assert done.returncode == 1 and "died of" in done.stderr
    assert "hang" not in done.stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
@pytest.mark.parametrize("command", ["probe", "doctor"])
def test_whoever_ends_it_leaves_no_process_in_a_driver_that_hangs(
    command: str, how: signal.Signals, stub: dict[str, str], clean_environment: dict[str, str], tmp_path: Path
) -> None:
    """A doctor hangs in cuInit, a probe in the question itself."""
    hanging = tmp_path / "pid"
    more = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "STUB_PID": str(hanging)}
    environment = {**clean_environment, **stub, **more, "STUB": "hang" if command == "probe" else "hang at once"}
    words = [sys.executable, "-m", "pyshim", command]
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pid = 0
    try:
        until(lambda: hanging.exists() and hanging.read_text().endswith("\n"))
        pid = int(hanging.read_text())
        os.kill(process.pid, how)
        assert process.wait(300) != 0
        until(lambda: ended(pid))
    finally:
        process.kill()
        process.wait()
        if pid and not ended(pid):
            os.kill(pid, signal.SIGKILL)


def until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 300
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


def ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_a_simulated_gpu_has_the_whole_limit_on_a_busy_host(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def answers(script: str, words: tuple[str, ...], *_: object) -> tuple[dict[str, Any], str]:
        given.append(float(words[-1]))
        return {}, "not asked"

    monkeypatch.setattr(ask.child, "ask", answers)
    ask.ask(0, {"SIMGPU": "h100"}, 60.0)
    ask.ask(0, {}, 60.0)
    assert given == [30.0, 5.0]


def test_an_answer_that_makes_no_sense(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in ([], {}, {"obstacle": ""}, {"obstacle": "", "bus": "", "trials": [{"alone": 1}], "waves": 1}, 7):
        monkeypatch.setattr(ask.child, "ask", lambda *_, data=data: (data, ""))
        found = ask.ask(0, {}, 1.0)
        assert found.verdict.rule is None and isinstance(found.refused, gpus.Answer)


def test_an_answer_under_mps_is_said_and_not_kept(
    cache: Path, clean_environment: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    here = {"XDG_CACHE_HOME": str(cache), "LD_LIBRARY_PATH": str(_native.SIMULATED_DRIVER.parent), **SLICE}
    machine = Machine({**clean_environment, **here, "SIMGPU": "h200:drain"}, patience=30.0)
    assert machine.cuda is not None
    (gpu,) = machine.cuda.gpus
    for mps in (True, False):
        answer = probe_command._probe(0, gpu._replace(mps=mps), machine, 30.0)
        probe_command._show(answer, False)
        said = capfd.readouterr().err
        assert answer.asked.verdict.rule == "drain" and len(kept(cache)) == (not mps)
        assert ("not kept: MPS is on" in said) == mps


def test_an_answer_that_contradicts_what_is_kept(probe: Probe, cache: Path) -> None:
    probe("--simulate", "h200:drain", **SLICE)
    (file,) = kept(cache)
    file.write_text(file.read_text().replace('"rule": "drain"', '"rule": "hold"'))
    done = probe("--simulate", "h200:drain", **SLICE)
    assert done.returncode == 0 and "not kept: GPUs of this name answered otherwise before" in done.stderr
    assert json.loads(file.read_text())["rule"] == "contradictory"


@pytest.mark.parametrize("number", ["1", "2"])
def test_two_multiprocessors_are_too_few(number: str, probe: Probe, cache: Path) -> None:
    done = probe("--simulate", "h200:drain", SIMGPU_MULTIPROCESSORS=number)
    assert done.returncode == 1 and "too few multiprocessors to tell hold from drain" in done.stderr
    assert not cache.exists()


# ---- what overlap-run makes of it ----

POLICY = """policy: 1
name: mine
gpu: ["NVIDIA H100*"]
when: always
{dispatch}
compute:
  - {{match: {{kernel: "*gemm*"}}, shape: {{blocks_per_sm: 1}}, when_dispatch: backfill}}
"""


def shaped(
    overlap_run: Any, overlap: Any, folder: Path, cache: Path, simulate: str, dispatch: str = "", **environment: str
) -> tuple[int, set[str]]:
    """Launches of the demo's program that were shaped, and the reasons of the GEMMs."""
    policy = folder / "mine.yaml"
    policy.write_text(POLICY.format(dispatch=dispatch))
    report = folder / f"report-{len(list(folder.iterdir()))}"
    program = (str(_native.DEMO / "demo-step"), "--arm=concurrent", "--layers=2", "--buckets=2")
    environment = {"XDG_CACHE_HOME": str(cache), **environment}
    words = ("--simulate", simulate, "--policy", str(policy), "--report", str(report), *program)
    done = overlap_run(*words, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(overlap("report", str(report), "--json", env=environment).stdout)
    reasons = {reason for process in found["processes"] for reason, count in process["reasons"].items() if count}
    return found["totals"]["shaped"], reasons


def test_the_answer_makes_a_rule_act(probe: Probe, overlap_run: Any, overlap: Any, tmp_path: Path, cache: Path) -> None:
    def run(simulate: str, dispatch: str = "") -> tuple[int, set[str]]:
        return shaped(overlap_run, overlap, tmp_path, cache, simulate, dispatch)

    count, reasons = run("h100:backfill")
    assert count == 0 and "dispatch_unknown" in reasons
    for rule in RULES:
        assert probe("--simulate", f"h100:{rule}", **SLICE).returncode == 0
    count, reasons = run("h100:backfill")
    assert count > 0 and "dispatch_unknown" not in reasons
    for rule in ("hold", "drain"):  # known, and another one: the rule is passed over
        count, reasons = run(f"h100:{rule}")
        assert count == 0 and "dispatch_unknown" not in reasons and "no_rule" in reasons
    assert run("h100:backfill", "dispatch: hold")[0] == 0, "the policy's own word wins"
    assert run("h100:hold", "dispatch: backfill")[0] > 0
    assert probe("--forget").returncode == 0
    assert run("h100:backfill")[0] == 0


def dry(overlap_run: Any, cache: Path, *arguments: str, **environment: str) -> list[str]:
    done = overlap_run(*arguments, "--dry-run", "true", env={"XDG_CACHE_HOME": str(cache), **environment})
    assert (done.returncode, done.stdout) == (0, "")
    return [line for line in done.stderr.splitlines() if "dispatch" in line]


def test_a_dry_run_says_where_it_comes_from(probe: Probe, overlap_run: Any, overlap: Any, cache: Path) -> None:
    assert dry(overlap_run, cache, "--simulate", "h200:drain") == []
    probe("--simulate", "h200:drain", **SLICE)
    (line,) = dry(overlap_run, cache, "--simulate", "h200:drain")
    today = json.loads(kept(cache)[0].read_text())["date"]
    assert line == (
        f"overlap: policy default: dispatch drain (overlap probe, {today}: NVIDIA H200, driver simulated drain)"
    )
    assert dry(overlap_run, cache, "--simulate", "h200:hold") == [], "another driver"
    assert dry(overlap_run, cache, "--simulate", "h100:drain") == [], "another GPU"
    assert len(dry(overlap_run, cache, "--simulate", "h200:drain", "--policy", "observe")) == 1
    inside = {"SIMGPU": "h200:drain,1"}  # inside of an overlap-run --simulate, with a policy of one's own
    assert len(dry(overlap_run, cache, "--policy", "auto", **inside)) == 1


def test_others_know_of_it(probe: Probe, overlap: Any, cache: Path) -> None:
    """overlap env, policy show, explain and doctor, on a machine with that driver."""
    here = {"XDG_CACHE_HOME": str(cache), "SIMGPU": "h100:backfill"}
    request = "--gpu h100 --threads 128 --registers 128 --dynamic-smem 40KiB --comm-threads 544 --comm-registers 96 "
    words = f"{request}--comm-static-smem 20832 --comm-dynamic-smem 82240 --policy h100 --kernel sgemm --json".split()

    def answers() -> tuple[Any, Any, str]:
        shown = json.loads(overlap("policy", "show", "h100", "--json", env=here).stdout)
        explained = json.loads(overlap("explain", *words, env=here).stdout)
        return shown, explained, overlap("env", "--policy", "h100", "--format", "json", env=here).stdout

    before = answers()
    assert (before[0]["policy"]["dispatch"], before[0]["probed"]) == ("unknown", None)
    assert probe("--simulate", "h100:backfill", **SLICE).returncode == 0
    after = answers()
    assert (after[0]["policy"]["dispatch"], after[0]["probed"]["rule"]) == ("backfill", "backfill")
    assert before[1]["reason"] == "dispatch_unknown" and after[1]["reason"] != "dispatch_unknown"
    assert json.loads(before[2])["OVERLAP_TABLE"] != json.loads(after[2])["OVERLAP_TABLE"]
    text = overlap("policy", "show", "h100", env=here).stdout
    assert "dispatch: backfill" in text and "# overlap probe, " in text
    # A TaskProlog, and a library elsewhere, are for other machines and other people.
    for elsewhere in (("--format", "slurm"), ("--library", "/opt/liboverlap.so", "--format", "json")):
        bare = {**here, "XDG_CACHE_HOME": "/nonexistent"}
        printed = [overlap("env", "--policy", "h100", *elsewhere, env=env).stdout for env in (here, bare)]
        assert printed[0] == printed[1] and "OVERLAP_TABLE" in printed[0]
    told = overlap("doctor", "--simulate", "h100:backfill", env=here).stdout
    assert "dispatch rule of GPU 0 (NVIDIA H100 80GB HBM3): backfill, probed" in told


def test_what_is_compiled_now_is_what_is_kept_compiled(
    probe: Probe, overlap_run: Any, overlap: Any, tmp_path: Path, cache: Path
) -> None:
    """The same hash for a policy that says the rule itself, by all three ways: shipped, own file, written there."""
    probe("--simulate", "h100:backfill", **SLICE)
    shipped = overlap("policy", "show", "h100", env={"XDG_CACHE_HOME": "/nonexistent"}).stdout
    said = tmp_path / "said.yaml"
    said.write_text(shipped.replace("dispatch: unknown", "dispatch: backfill"))
    own = tmp_path / "own.yaml"
    own.write_text(shipped)
    hashes = set()
    for policy in ("h100", str(own), str(said)):
        report = tmp_path / f"report-{len(hashes)}-{Path(policy).stem}"
        words = ("--simulate", "h100:backfill", "--policy", policy, "--report", str(report))
        assert overlap_run(*words, "true", env={"XDG_CACHE_HOME": str(cache)}).returncode == 0
        (run,) = report.glob("run-*.json")
        hashes.add((json.loads(run.read_text())["policies"][0]["hash"], json.loads(run.read_text())["table"]))
    assert len({digest for digest, _ in hashes}) == 1


def test_an_answer_of_a_simulated_gpu_that_steers_a_run_is_named(
    probe: Probe, overlap: Any, overlap_run: Any, cache: Path, tmp_path: Path
) -> None:
    """At the start and in the report, and not as the policy's own word."""
    assert probe("--simulate", "h100:hold", **SLICE).returncode == 0
    env = {"XDG_CACHE_HOME": str(cache)}
    done = overlap_run("--simulate", "h100", "--report", "out", "demo-stencil", env=env, cwd=tmp_path)
    found = re.search(r"policy h100: dispatch hold \((overlap probe, .*, driver simulated hold)\)", done.stderr)
    assert found and done.returncode == 0, done.stderr
    assert (
        f"and {found[1]} found hold for this one (`dispatch`)"
        in overlap("report", "out", "--full", cwd=tmp_path).stdout
    )
    env["XDG_CACHE_HOME"] = str(tmp_path / "empty")
    other = overlap_run("--simulate", "h100", "--report", "other", "demo-stencil", env=env, cwd=tmp_path)
    assert "overlap probe" not in other.stderr
    assert "and the policy says unknown for this one" in overlap("report", "other", "--full", cwd=tmp_path).stdout
