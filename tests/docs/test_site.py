"""docs/ becomes a site without a warning, and links that leave docs/ become paths of the repository."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.docs import site

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(
    importlib.util.find_spec("material") is None, reason="needs mkdocs-material (Python 3.11): make docs"
)
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    index = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert 'src="pictures/stencil.svg"' in index and "https://fonts" not in index


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("[limits](explanation/limits.md)", "[limits](explanation/limits.md)"),
        ("[up](../reference.md#gpu)", "[up](../reference.md#gpu)"),
        ("[data](../../Makefile)", "data (`Makefile`)"),
        ("[Makefile](../../Makefile)", "`Makefile`"),
        ("[page](../../CONTRIBUTING.md#x)", "page (`CONTRIBUTING.md`)"),
        ("![picture](../pictures/stencil.svg)", "![picture](../pictures/stencil.svg)"),
        ("```yaml mine.yaml mistakes\na\n```", "```yaml\na\n```"),
    ],
)
def test_what_leaves_docs_becomes_a_path(markdown: str, expected: str) -> None:
    assert site.inside(markdown, "how-to/policy.md") == expected


def test_a_link_to_no_file_is_refused() -> None:
    with pytest.raises(FileNotFoundError, match="gone"):
        site.inside("[gone](../../tools/gone.md)", "how-to/policy.md")
