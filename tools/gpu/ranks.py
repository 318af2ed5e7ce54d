"""Are reports of real ranks true? torchrun and NCCL on two GPUs, with the library brought in by every way there is.

    python -m tools.gpu.ranks SITE OUTPUT.json  SITE: the folder that tools/site/install has made; overlap-run in PATH

Each arm is one torchrun of two ranks, which compute and reduce, and print a digest of what came out. Beside what each
rank printed stands what `overlap report --check` says of the arm's folder: in `partial` one rank runs without the
library, in `other-policy` under another policy, in `strict` likewise with `--strict`.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

POLICY, OTHER = "default", "observe"
STEPS, SIZE = 8, 4096
SECOND = '[ "$RANK" = 1 ]'


def rank_main() -> int:
    """STEPS products of SIZE x SIZE, each summed over the ranks while the next one runs."""
    import hashlib

    import torch
    import torch.distributed as dist

    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    torch.manual_seed(rank)
    a = torch.randn(SIZE, SIZE, device="cuda")
    sums, works = [], []
    for _ in range(STEPS):
        a = torch.tanh(a @ a / SIZE**0.5)
        sums.append(a.clone())
        works.append(dist.all_reduce(sums[-1], async_op=True))
    for work in works:
        work.wait()
    torch.cuda.synchronize()
    data = b"".join(one.cpu().numpy().tobytes() for one in sums)
    # One write: the ranks share the pipe.
    os.write(1, f"{os.environ['RANK']} {hashlib.sha256(data).hexdigest()[:16]}\n".encode())
    dist.destroy_process_group()
    return 0


def arms(site: Path, report: Path) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Command and variables of each."""
    me = os.path.abspath(__file__)
    torchrun = ["torchrun", "--standalone", "--nproc-per-node", "2"]
    program = [*torchrun, me, "rank"]
    prolog = f'eval "$({shlex.quote(str(site))}/libexec/task-prolog)"; exec "$@"'
    start = f"exec {shlex.join([sys.executable, me, 'rank'])}"

    def inside(script: str) -> list[str]:
        return [*torchrun, "--no-python", "sh", "-c", script]

    run = ["overlap-run", "--policy", POLICY, "--report", str(report)]
    chosen = f"overlap-run $STRICT --policy $({SECOND} && echo {OTHER} || echo {POLICY}) --report {report}"
    each = f"{chosen} {shlex.join([sys.executable, me, 'rank'])}"
    choice = {"OVERLAP_POLICY": POLICY, "OVERLAP_REPORT": str(report)}
    return {
        "bare": (program, {}),
        "outside": ([*run, *program], {}),
        "inside": ([*torchrun, "--no-python", *run, sys.executable, me, "rank"], {}),
        "both": ([*run, *torchrun, "--no-python", *run, sys.executable, me, "rank"], {}),
        "prolog": (["sh", "-c", prolog, "sh", *program], choice),
        "partial": ([*run, *inside(f"{SECOND} && export OVERLAP_RUN=off; {start}")], {}),
        "other-policy": (inside(f"exec {each}"), {}),
        "strict": (inside(f"exec {each}"), {"STRICT": "--strict"}),
    }


def measure(name: str, site: Path, folder: Path) -> dict[str, Any]:
    report = folder / name
    report.mkdir()
    command, variables = arms(site, report)[name]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=120)
    digests = sorted(line for line in done.stdout.splitlines() if line[:2] in ("0 ", "1 "))
    found: dict[str, Any] = {"arm": name, "exit_status": done.returncode, "digests": digests}
    said = [line for line in done.stderr.splitlines() if line.startswith("overlap")]
    found["said"] = [line.replace(str(report), "REPORT") for line in said]
    if any(report.iterdir()):
        asked = ["overlap", "report", str(report), "--check", "--json"]
        checked = subprocess.run(asked, capture_output=True, text=True)
        answer = json.loads(checked.stdout or '{"processes": [], "findings": []}')
        kept = ("rank", "world", "launches", "communication", "raised")
        ranks = [{key: one[key] for key in kept} for one in answer["processes"]]
        found |= {"check": checked.returncode, "findings": answer["findings"], "processes": ranks}
    return found


def main() -> int:
    site, output = Path(sys.argv[1]), Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        names = list(arms(site, Path(folder)))
        output.write_text(json.dumps([measure(name, site, Path(folder)) for name in names], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(rank_main() if sys.argv[1:] == ["rank"] else main())
