"""Programs in other environments, with the library and without; see environments.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from environments import Pair, Shop, World
from interposing import Done


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop(tmp_path_factory.mktemp("libcs"))


@pytest.fixture(scope="session")
def worlds(shop: Shop) -> Callable[[str], World]:
    made: dict[str, World] = {}

    def world(name: str) -> World:
        if name not in made:
            made[name] = World(name, shop)
        return made[name]

    return world


@pytest.fixture
def world(environment: str, worlds: Callable[[str], World]) -> World:
    return worlds(environment)


@pytest.fixture(scope="session")
def known() -> dict[Any, Done]:
    """What came of programs without the library; they are asked once."""
    return {}


@pytest.fixture
def pair(world: World, bare: Callable[..., Done], preloaded: Callable[..., Done], known: dict[Any, Done]) -> Pair:
    """only_ours: variables that are set only where the library is."""

    def run(
        program: Path,
        words: str | Sequence[str] = (),
        policy: str = "observe",
        env: Mapping[str, str] | None = None,
        driver: bool = True,
        preload: str = "",
        **only_ours: Any,
    ) -> tuple[Done, Done]:
        target = next(target for target in world.kind.targets if target in program.parts)
        command = [*world.start, str(program), *(words.split() if isinstance(words, str) else words)]
        variables = {**world.variables(target, driver), **(env or {})}
        asked = (*command, *sorted(variables.items()))
        if asked not in known:
            known[asked] = bare(command[1:], program=command[0], env=variables)
        ours = {**variables, **only_ours}
        done = preloaded(command[1:], policy, program=command[0], env=ours, preload=preload or str(world.library))
        return done, known[asked]

    return run
