"""Files of results: JSON that a person can look through, a row a line, and whole at any time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

OPEN = ("steps", "lines", "rows")  # lists of rows, and what holds such lists


def write(path: Path, made: dict[str, Any]) -> None:
    partial = path.with_suffix(".part")
    partial.write_text(text(made) + "\n", encoding="utf-8")
    partial.replace(path)


def text(value: Any, depth: int = 0) -> str:
    """JSON; an element a line of the whole, of lists in OPEN and of the objects that have such lists.

    >>> print(text({"a": {"b": [1, 2]}, "rows": [{"c": [3]}, {"c": [4]}]}))
    {
     "a": {"b": [1, 2]},
     "rows": [
      {"c": [3]},
      {"c": [4]}
     ]
    }
    """
    if not isinstance(value, dict) or (depth and not any(isinstance(value.get(name), list) for name in OPEN)):
        return json.dumps(value)
    edge, parts = "\n" + " " * (depth + 1), []
    for name, part in value.items():
        said = text(part, depth + 1)
        if name in OPEN and isinstance(part, list) and part:
            said = f"[{edge} " + f",{edge} ".join(text(one, depth + 2) for one in part) + f"{edge}]"
        parts.append(f"{json.dumps(name)}: {said}")
    return "{" + edge + f",{edge}".join(parts) + "\n" + " " * depth + "}"
