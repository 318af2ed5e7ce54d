"""Packaging hook: compiles the C parts by shim/build.py and puts them, and the policies, into the wheel."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Of glibc 2.17, by both of its names: pip knows the second from 20.3 on.
MANYLINUX = "manylinux2014_{0}.manylinux_2_17_{0}"


def builder(root: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("shim_build", Path(root, "shim", "build.py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def commands(launcher: Path, folder: Path) -> dict[str, str]:
    """Copy the launcher for each command, because wheels hold no links. Return the copies and their names."""
    copies = {folder / name: name for name in ("overlap", "overlap-run")}
    for copy in copies:
        shutil.copy(launcher, copy)
    return {str(copy): name for copy, name in copies.items()}


class CustomBuildHook(BuildHookInterface[Any]):
    """An editable install builds in place; a wheel is built elsewhere, so that the tree stays clean.

    OVERLAP_BUILD=off: an editable install builds nothing. The Makefile does it, and knows when to do it again.
    OVERLAP_BUILD=release: for every machine with glibc 2.17 (tools/release), of the processor OVERLAP_MACHINE.
    """

    def dependencies(self) -> list[str]:
        if os.environ.get("OVERLAP_BUILD") == "off":
            return []
        # The first two write down the header and what the shipped policies compile to.
        return ["cffi>=1.15", "PyYAML>=6.0", *builder(self.root).requirements()]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        build = builder(self.root)
        build_data["pure_python"] = False
        here = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{MANYLINUX.format(build.machine()) if build.released() else here}"
        self.output = tempfile.TemporaryDirectory(prefix="overlap-run-")
        folder = Path(self.output.name)
        scripts = build_data["shared_scripts"]
        scripts["tools/release/overlap-run.py"] = ".overlap-run.py"
        if version == "editable":
            if os.environ.get("OVERLAP_BUILD") != "off":
                build.build()
                scripts.update(commands(build.OUTPUT / "launcher", folder))
            return
        # Debug information is most of the size, and that in the compiler's own objects names folders of this machine.
        os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", str(folder / "zig"))  # the home may be read-only
        library = folder / "lib"
        build.build(library, cflags=["-g0", "-Wl,--strip-all"])
        scripts.update(commands(library / "launcher", folder))
        (library / "launcher").unlink()
        build_data["force_include"].update({str(library): "pyshim/_lib", "policies": "pyshim/policies"})
