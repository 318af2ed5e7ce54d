"""Which processes have a context? Device files that are open and mapped, and what the library says of each at its end.

    python -m tools.gpu.context_files OUTPUT.json FOLDER

Needs PyTorch, cc, and overlap-run in PATH; libcuda.so.1 is in FOLDER.

Bare, and behind `overlap-run --policy observe`. `hidden` reaches the driver by a library that was opened with
RTLD_DEEPBIND, past every preloaded one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

NVML = "m = CDLL('libnvidia-ml.so.1'); m.nvmlInit_v2(); n = c_uint(); m.nvmlDeviceGetCount_v2(byref(n))"
INIT = "c = CDLL('libcuda.so.1'); c.cuInit(0); x = c_void_p()"
HIDDEN = "c = CDLL(PLUGIN, mode=os.RTLD_NOW | os.RTLD_DEEPBIND)"
PROGRAMS = {
    "watches": NVML,
    "watched": f"{NVML}; m.nvmlShutdown()",
    "initialised": INIT,
    "counted by PyTorch": "import torch; torch.cuda.is_available(); torch.cuda.device_count()",
    "primary context": f"{INIT}; c.cuDevicePrimaryCtxRetain(byref(x), 0)",
    "primary context released": f"{INIT}; c.cuDevicePrimaryCtxRetain(byref(x), 0); c.cuDevicePrimaryCtxRelease_v2(0)",
    "context": f"{INIT}; c.cuCtxCreate_v2(byref(x), 0, 0)",
    "PyTorch, no launch": "import torch; torch.zeros(1).cuda()",
    "PyTorch, a launch": "import torch; a = torch.zeros(9).cuda() + 1",
    "hidden, initialised": f"{HIDDEN}; c.use(0)",
    "hidden, primary context": f"{HIDDEN}; c.use(1)",
}
PLUGIN = """
extern int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int);
int use(int make) {
    void *context;
    return cuInit(0) + (make ? cuDevicePrimaryCtxRetain(&context, 0) : 0);
}
"""


def look(program: str) -> None:
    import ctypes

    exec(program, {**vars(ctypes), "os": os, "PLUGIN": os.environ["PLUGIN"]})
    mapped: Counter[str] = Counter()
    with open("/proc/self/maps") as file:
        for words in map(str.split, file):
            if len(words) > 5 and words[5].startswith("/dev/nvidia"):
                first, last = (int(number, 16) for number in words[0].split("-"))
                mapped[f"{words[5]} {words[1]}"] += last - first
    links = (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
    files = {os.readlink(link) for link in links if os.path.lexists(link)}
    opened = sorted(name for name in files if name.startswith("/dev/nvidia"))
    print(json.dumps({"open": opened, "mapped": dict(mapped)}))


def measure(name: str, folder: Path) -> dict[str, object]:
    command = [sys.executable, os.path.abspath(__file__), "look", PROGRAMS[name]]
    report = folder / name.replace(" ", "-")
    run = ["overlap-run", "--policy", "observe", "--report", str(report), *command]
    environment = {**os.environ, "PLUGIN": str(folder / "plugin.so")}
    bare, done = (subprocess.run(words, env=environment, capture_output=True, text=True) for words in (command, run))
    said = [line.partition("; next:")[0] for line in done.stderr.splitlines() if line.startswith("overlap: ")]
    pages = len(list(report.glob("*.page")))
    seen = json.loads(bare.stdout)
    return {
        "program": name,
        "code": PROGRAMS[name],
        **seen,
        "exit_status": done.returncode,
        "said": said,
        "pages": pages,
    }


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "plugin.c").write_text(PLUGIN)
        words = ["cc", "-shared", "-fPIC", "plugin.c", "-o", "plugin.so", "-l:libcuda.so.1", f"-L{sys.argv[2]}"]
        subprocess.run(words, cwd=folder, check=True)
        found = [measure(one, folder) for one in PROGRAMS]
    Path(sys.argv[1]).write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "look":
        look(sys.argv[2])
    else:
        sys.exit(main())
