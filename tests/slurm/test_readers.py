"""The task-prolog and the modulefile read a site folder, each in a language of its own. They must take the same
variables from it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import debian
import module_systems
import pytest
import readers
import site_folder

from pyshim.policy import values

READERS = ("prolog", "lmod", "tcl")
Variables = dict[str, str]


def names() -> list[str]:
    """Return names of variables that ranks must agree on, and names that are nearly such."""
    globs = [glob.replace("*", fill) for glob in values.MUST_AGREE for fill in ("", "X_1")]
    return sorted({name for glob in globs for name in (glob, f"{glob}_Y", glob[:-1])})


@pytest.fixture(scope="module")
def folder(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a site folder whose default is `own`, with a policy `many` that sets every one of the names."""
    made = tmp_path_factory.mktemp("readers") / "overlap"
    shutil.copytree(installed, made)
    site_folder.belongs_to(made, installed)
    (made / "default").write_text("own\n")
    lines = "".join(f"export {name}=1\n" for name in names())
    (made / "env" / "many.env").write_text((made / "env" / "observe.env").read_text() + lines)
    return made


def of_prolog(folder: Path, environment: Mapping[str, str]) -> Variables:
    command = [str(folder / "libexec" / "task-prolog")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    return readers.exports(done.stdout)


def of_module(system: str, folder: Path, environment: Mapping[str, str], scratch: Path) -> Variables:
    try:
        command = module_systems.commands()[system]
    except debian.Missing as reason:
        pytest.skip(str(reason))
    clean = {"PATH": os.environ["PATH"], "MODULEPATH": str(folder / "modulefiles"), "LMOD_PAGER": "none"}
    modules = module_systems.System(system, command, {**clean, **environment}, scratch)
    before, loaded = modules("true", "module load overlap-preload")
    return {name: value for name, value in loaded.environment.items() if before.environment.get(name) != value}


@pytest.fixture(scope="module")
def read(folder: Path, tmp_path_factory) -> Callable[..., Variables]:
    """read(reader, home, NAME=value) -> the variables that the reader sets for the user of that home folder."""

    def run(reader: str, home: Path, **more: str) -> Variables:
        environment = {"HOME": str(home), **more}
        if reader == "prolog":
            return of_prolog(folder, environment)
        return of_module(reader, folder, environment, tmp_path_factory.mktemp("steps"))

    return run


@pytest.mark.parametrize("reader", READERS)
def test_what_ranks_must_agree_on_is_never_set(read: Callable[..., Variables], tmp_path: Path, reader: str) -> None:
    may_differ = {name for name in names() if not any(fnmatchcase(name, glob) for glob in values.MUST_AGREE)}
    assert may_differ == set(names()) & set(read(reader, tmp_path, OVERLAP_POLICY="many"))


USERS = {
    "h100\n": "h100",
    "h100": "h100",
    "\nh100\n": "h100",
    " \t\n\n\th100 \nobserve\n": "h100",
    "": "own",
    " \n\t\n": "own",
    " off\n": None,
    "\n\noff": None,
    "h100\r\n": None,
    "h100 observe\n": None,
    "no-such\n": None,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("text, wanted", USERS.items(), ids=map(repr, USERS))
def test_the_file_of_the_user(
    read: Callable[..., Variables], folder: Path, tmp_path: Path, reader: str, text: str, wanted: str | None
) -> None:
    """The choice is the first line that is not blank, without the blanks around it."""
    file = tmp_path / ".config" / "overlap-run" / "policy"
    file.parent.mkdir(parents=True)
    file.write_text(text, newline="")
    table = readers.exports((folder / "env" / f"{wanted}.env").read_text())["OVERLAP_TABLE"] if wanted else None
    assert read(reader, tmp_path).get("OVERLAP_TABLE") == table


CONFS = {
    "NCCL_CGA_CLUSTER_SIZE=4": True,
    "# mine\nNCCL_CGA_CLUSTER_SIZE =4\n": True,
    "#NCCL_CGA_CLUSTER_SIZE=4\n": False,
    "NCCL_CGA_CLUSTER_SIZES=4\nX_NCCL_CGA_CLUSTER_SIZE=4\n": False,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("where", ["HOME", "NCCL_CONF_FILE"])
@pytest.mark.parametrize("text, stays", CONFS.items(), ids=map(repr, CONFS))
def test_a_setting_in_a_file_of_nccl_is_kept(
    read: Callable[..., Variables], tmp_path: Path, reader: str, where: str, text: str, stays: bool
) -> None:
    file = tmp_path / (".nccl.conf" if where == "HOME" else "conf")
    file.write_text(text)
    done = read(reader, tmp_path, **({} if where == "HOME" else {where: str(file)}))
    assert done["TORCH_NCCL_HIGH_PRIORITY"] == "1"
    assert ("NCCL_CGA_CLUSTER_SIZE" in done) is not stays
