"""Make docs/pictures/report.png and compare.png: pages of `overlap report --html` about the demo's program on the
simulated H100, as Chromium draws them.

    .venv/bin/python tools/docs/pictures.py [FOLDER]    # default: docs/pictures
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import browser  # noqa: E402
import debian  # noqa: E402

BIN = ROOT / ".venv" / "bin"
RUN = ("overlap-run", "--quiet", "--simulate", "h100")
STEP = ("demo-step", "--arm=concurrent", "--warmup=1", "--steps=1")
# What is run, with the trace that the simulated GPU writes.
COMMANDS = (
    ("", (*RUN, "--policy", "h100-paper", "--report", "run1", "demo-step", "--arm=concurrent", "--steps=40")),
    ("before.json", (*RUN, "--policy", "observe", *STEP)),
    ("after.json", (*RUN, "--policy", "h100", *STEP)),
    ("", ("overlap", "report", "run1", "--html", "report.html")),
    ("", ("overlap", "report", "--compare", "before.json", "after.json", "--html", "compare.html")),
)
WIDTH, HEIGHTS = 1000, {"report": 1180, "compare": 1130}  # pixels


def main(folder: Path) -> int:
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for trace, (program, *words) in COMMANDS:
            environment = {**os.environ, **({"SIMGPU_TRACE": trace} if trace else {})}
            subprocess.run([BIN / program, *words], cwd=work, env=environment, check=True, stdout=subprocess.DEVNULL)
        (work / "chromium").mkdir()
        try:
            with browser.browser(work / "chromium") as chromium:
                for picture, height in HEIGHTS.items():
                    with chromium.page(work / f"{picture}.html", width=WIDTH) as page:
                        page.picture(folder / f"{picture}.png", height=height)
        except debian.Missing as missing:
            print(missing, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "pictures").resolve()))
