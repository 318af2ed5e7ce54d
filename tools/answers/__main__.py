"""docs/sizes.md, sensitivity.md, robustness.md, overlap.md, answers.md and their pictures, made anew or compared.

    .venv/bin/python tools/answers --check [PAGE ...]    # exit status 1 and a line for each file that is not of today
    .venv/bin/python tools/answers --write [PAGE ...]
    .venv/bin/python tools/answers --measure             # the suite's rows for robustness: minutes on two idle cores

PAGE: sizes, sensitivity, robustness, overlap, answers. Needs the built library and simulated GPU (make setup). --check
of robustness also runs a few rows of the suite again.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[0] = str(ROOT)
sys.path[1:1] = [str(ROOT / "tools" / name) for name in (".", "bench", "footprints", "gpu/overlap", "simgpu")]

from answers import overlap, questions, robustness, rows, sensitivity, sizes  # noqa: E402
from pyshim.errors import OverlapError  # noqa: E402

PAGES = {
    "sizes": sizes.files,
    "sensitivity": sensitivity.files,
    "robustness": robustness.files,
    "overlap": overlap.files,
    "answers": questions.files,
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="answers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group(required=True)
    for option in ("--check", "--write", "--measure"):
        what.add_argument(option, action="store_true")
    parser.add_argument("pages", nargs="*", metavar="PAGE")
    options = parser.parse_args()
    if unknown := sorted(set(options.pages) - set(PAGES)):
        parser.error(f"no page is called {unknown[0]}; pages: {', '.join(PAGES)}")
    try:
        if options.measure:
            return rows.measure(ROOT)
        return _pages(options.pages or list(PAGES), options.write)
    except OverlapError as error:
        print(f"answers: {error}{f': {error.hint}' if error.hint else ''}", file=sys.stderr)
        return error.status


def _pages(names: list[str], write: bool) -> int:
    old = 0
    for name in names:
        for path, text in PAGES[name](ROOT).items():
            target = ROOT / path
            before = target.read_text(encoding="utf-8") if target.exists() else None
            if write and before != text:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
            elif before != text:
                old += 1
                print(f"{path}: not of today: .venv/bin/python tools/answers --write {name}", file=sys.stderr)
        if name == "robustness" and not write:
            for line in rows.rotten(ROOT):
                old += 1
                print(line, file=sys.stderr)
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
