"""Real HIP runtimes on the simulated GPU; see hip_world.py."""

from __future__ import annotations

from pathlib import Path

import hip_world
import pytest

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def bookworm() -> Path:
    return hip_world.parts("bookworm", hip_world.BOOKWORM)


@pytest.fixture(scope="session")
def trixie() -> Path:
    return hip_world.parts("trixie", hip_world.TRIXIE)


@pytest.fixture(scope="session", params=["5.2", "5.7"])
def libraries(request: pytest.FixtureRequest) -> Path | None:
    """Where programs find their runtime; every test runs with both. None: beside the compiler."""
    return None if request.param == "5.2" else request.getfixturevalue("trixie") / hip_world.LIBRARIES


@pytest.fixture(scope="session")
def build(bookworm: Path, libraries: Path | None, tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    """Compiles one of programs/."""
    folder = tmp_path_factory.mktemp("hip")

    def made(name: str, *flags: str) -> Path:
        output = folder / f"{name}{len(flags)}"
        if not output.exists():
            source = hip_world.PROGRAMS / f"{name}.hip"
            hip_world.compile_hip(bookworm, source, output, *flags, runtime=libraries)
        return output

    return made


@pytest.fixture(scope="session")
def code_object(bookworm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernels without a program around them, as hipcc --genco makes them."""
    folder = tmp_path_factory.mktemp("code")
    source = folder / "kernels.hip"
    source.write_text('#include "kernels.h"\n')
    flags = ("--cuda-device-only", f"-I{hip_world.PROGRAMS}")
    return hip_world.compile_hip(bookworm, source, folder / "kernels.co", *flags)
