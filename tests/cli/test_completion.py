"""Manual pages and completions: made from the parsers, shown without a warning, and working in a real shell."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from pyshim.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory, library: object) -> Path:
    folder = tmp_path_factory.mktemp("prefix")
    command = [sys.executable, "-m", "tools.manual.make", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    return folder / "share"


@pytest.fixture(scope="module")
def parsers(library: object) -> ModuleType:
    return importlib.import_module("tools.manual.parsers")


@pytest.fixture
def complete(share: Path, tmp_path: Path, clean_environment: dict[str, str]) -> Callable[[str], list[str]]:
    """What bash offers for a line, whose last word is being typed. bash splits words at = and :, as readline does."""
    (tmp_path / "mine.yaml").write_text("")
    (tmp_path / "out folder").mkdir()

    def offered(line: str) -> list[str]:
        words = [part for word in line.split(" ") for part in re.split(r"(=)", word) if part] + [""] * line.endswith(
            " "
        )
        script = (
            f'source "{share}/bash-completion/completions/overlap"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
            '_overlap; ((${#COMPREPLY[@]})) && printf "%s\\n" "${COMPREPLY[@]}"; exit 0'
        )
        done = subprocess.run(
            ["bash", "--norc", "-c", script, "bash", *words],
            cwd=tmp_path, env=clean_environment, capture_output=True, text=True, timeout=300, check=True,
        )  # fmt: skip
        assert done.stderr == "", done.stderr
        return done.stdout.splitlines()

    return offered


def test_every_option_is_on_the_pages_and_in_the_completions(parsers, share):
    for command in parsers.every():
        name = command.words[0]
        page = (share / "man/man1" / f"{name}.1").read_text().replace("\\-", "-")
        texts = {
            "page": page,
            "bash": (share / "bash-completion/completions" / name).read_text(),
            "zsh": (share / "zsh/site-functions/_overlap").read_text(),
            "fish": (share / f"fish/vendor_completions.d/{name}.fish").read_text(),
        }
        for option in command.options:
            for word in () if option.hidden else option.names:
                wanted = {"fish": f"-l {word[2:]}" if word.startswith("--") else f"-s {word[1:]}"}
                for kind, text in texts.items():
                    if word not in ("-h", "--help"):
                        assert wanted.get(kind, word) in text, (kind, command.words, word)
        if len(command.words) > 1:
            assert f".SS {' '.join(command.words)}" in page


@pytest.mark.parametrize("name", ["overlap", "overlap-run"])
def test_man_shows_the_page_without_a_warning(name, share):
    page = share / "man/man1" / f"{name}.1"
    shown = 0
    for tool in (["groff", "-man", "-Tutf8", "-ww"], ["mandoc", "-Tlint", "-Wwarning"]):
        if shutil.which(tool[0]):
            done = subprocess.run([*tool, str(page)], capture_output=True, text=True, timeout=300)
            assert (done.stderr, "WARNING" in done.stdout) == ("", False), done.stdout[:500]
            shown += 1
    if not shown:
        pytest.skip("neither groff nor mandoc")


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("overlap-run --sim", ["--simulate"]),
        ("overlap-run --simulate mi", ["mi250x", "mi300x"]),
        ("overlap-run --simulate=mi2", ["mi250x"]),
        ("overlap-run -p obs", ["observe"]),
        ("overlap-run --policy min", ["mine.yaml"]),
        ("overlap-run --report o", ["out folder"]),
        ("overlap-run --report out --str", ["--strict"]),
        ("overlap-run -q -- overlap-r", None),
        ("overlap-run -o out sh min", ["mine.yaml"]),
        ("overlap-run sh -c --str", []),
        ("overlap repo", ["report"]),
        ("overlap policy s", ["show", "schema"]),
        ("overlap policy show --gpu h1", ["h100"]),
        ("overlap policy check --output-format g", ["github"]),
        ("overlap explain --policy h200-s", ["h200-small-comm"]),
        ("overlap report --htm", ["--html"]),
        ("overlap --color a", ["auto", "always"]),
        ("overlap --color never repo", ["report"]),
        ("overlap run --simulate mi3", ["mi300x"]),
        ("overlap run -p observe sh min", ["mine.yaml"]),
        ("overlap doctor --simulate h2", ["h200"]),
        ("overlap doctor --policy auto sh min", ["mine.yaml"]),
    ],
)
def test_bash_completes(line, wanted, complete):
    found = complete(line)
    if wanted is None:
        assert all(word.startswith("overlap-r") for word in found)
    else:
        assert found == wanted


def test_bash_offers_every_command(complete):
    assert complete("overlap ") == ["run", *COMMANDS]


def test_a_program_s_own_completion_goes_on_behind_overlap_run(share, clean_environment):
    """With the function of bash-completion for that."""
    script = (
        f'source "{share}/bash-completion/completions/overlap-run"; _command_offset() {{ echo "from word $1"; }}; '
        "COMP_WORDS=(overlap-run -q --policy x git ch); COMP_CWORD=5; _overlap"
    )
    done = subprocess.run(["bash", "-c", script], env=clean_environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("from word 4\n", "")


@pytest.mark.parametrize(("shell", "path"), [
    ("zsh", "zsh/site-functions/_overlap"),
    ("fish", "fish/vendor_completions.d/overlap.fish"),
    ("fish", "fish/vendor_completions.d/overlap-run.fish"),
])  # fmt: skip
def test_another_shell_reads_its_file(shell, path, share):
    if not shutil.which(shell):
        pytest.skip(f"no {shell}")
    subprocess.run([shell, "-n", str(share / path)], check=True, capture_output=True, timeout=300)
