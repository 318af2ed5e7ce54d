"""What commands that make files have in common: --write, and --check, which says what is old."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path


def parser(text: str | None) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = made.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true")
    what.add_argument("--write", action="store_true")
    return made


def finish(made: Mapping[Path, str], module: str, write: bool) -> int:
    """Write the files that differ, or name each and return exit status 1."""
    old = [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in old:
        if write:
            path.write_text(made[path], encoding="utf-8")
        else:
            print(f"{path}: not of today: python -m {module} --write", file=sys.stderr)
    return 1 if old and not write else 0
