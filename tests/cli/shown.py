"""A program that prints its environment."""

from __future__ import annotations

import subprocess

SHOW = ("env", "-0")


def shown(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    return dict(entry.split("=", 1) for entry in done.stdout.split("\0")[:-1])
