"""A compiled training step in JAX, and a digest of what it computes: python -m tools.gpu.jax_program."""

from __future__ import annotations

import hashlib
import sys
from typing import Any

import jax
import jax.numpy as jnp


def loss(weights: list[Any], x: Any) -> Any:
    for weight in weights:
        x = jnp.tanh(x @ weight)
    return jnp.mean(x * x)


@jax.jit  # type: ignore[untyped-decorator, unused-ignore]
def step(weights: list[Any], x: Any) -> list[Any]:
    return [weight - 0.1 * change for weight, change in zip(weights, jax.grad(loss)(weights, x))]


def main() -> int:
    keys = jax.random.split(jax.random.PRNGKey(0), 4)
    weights = [jax.random.normal(key, (2048, 2048)) * 0.02 for key in keys[:3]]
    x = jax.random.normal(keys[3], (4096, 2048))
    for _ in range(20):
        weights = step(weights, x)
    print(hashlib.sha256(b"".join(jax.device_get(weight).tobytes() for weight in weights)).hexdigest()[:16])
    return 0


if __name__ == "__main__":
    sys.exit(main())
