"""bubblewrap and Charliecloud, on images that are folders, by the recipes of docs/how-to/deploy.md."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import recipes

from pyshim.pages.page import Page, read_page

WORDS = "ptx=k repeat=3 launch=k,4000,256,0"


@dataclass
class Done:
    status: int
    stdout: str
    stderr: str


@dataclass
class Engine:
    """One of the two, by its recipe."""

    name: str
    site: Path
    image: Path
    environment: Mapping[str, str]
    folder: Path  # to work in

    def __call__(
        self,
        program: str = f"client {WORDS}",
        mounted: bool = True,
        report: Path | None = None,
        env: Mapping[str, str] | None = None,
        change: Callable[[str], str] = str,
        image: Path | None = None,
    ) -> Done:
        """mounted: the site folder is. report: mounted as /report. change: of the command line."""
        text = recipes.block(self.name)
        if not mounted:
            text = text.replace("--ro-bind /opt/overlap /opt/overlap", "").replace(
                "--bind=/opt/overlap:/opt/overlap ", ""
            )
            assert "bind /opt" not in text and "bind=/opt" not in text
        text = change(recipes.filled_in(text, site=self.site, image=image or self.image, program=program))
        if report is not None:
            before = {"bwrap": "--tmpfs /tmp", "ch-run": "ch-run"}[self.name]
            bind = {"bwrap": f"--bind {report} /report", "ch-run": f"--bind={report}:/report"}[self.name]
            assert before in text
            text = text.replace(before, f"{before} {bind}")
        script = recipes.filled_in(recipes.block("overlap env"), site=self.site) + text
        done = subprocess.run(
            ["sh", "-e"],
            input=script,
            cwd=self.folder,
            env={**self.environment, "OVERLAP_REPORT": "/report", **(env or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        return Done(done.returncode, done.stdout, done.stderr)


def pages(report: Path) -> list[Page]:
    return [read_page(str(path)) for path in sorted(report.glob("*.page"))]


def launches(report: Path) -> list[int]:
    return [page.launches for page in pages(report)]


def copied(image: Path, folder: Path) -> Path:
    shutil.copytree(image, folder, symlinks=True, copy_function=os.link)
    return folder
