"""Data-parallel training in JAX by pmap, one process for all GPUs: python -m tools.gpu.whole.jax_rank

Requests and answers are those of rank.py, but for traces. Weights do not change, so that all steps are alike.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from tools.gpu.overlap.turns import say, serve

GPU = jax.default_backend() == "gpu"
LAYERS, TOKENS, WIDTH = (8, 4096, 4096) if GPU else (2, 8, 16)
WARM = 2


def loss(weights: list[Any], x: Any) -> Any:
    for weight in weights:
        x = jax.nn.gelu(x @ weight)
    return jnp.mean(x.astype(jnp.float32) ** 2)


@partial(jax.pmap, axis_name="gpus")
def whole(weights: list[Any], x: Any) -> Any:
    value, gradients = jax.value_and_grad(loss)(weights, x)
    return value, jax.lax.pmean(gradients, "gpus")


@jax.pmap  # type: ignore[untyped-decorator, unused-ignore]
def computation(weights: list[Any], x: Any) -> Any:
    return jax.value_and_grad(loss)(weights, x)


@partial(jax.pmap, axis_name="gpus")
def communication(weights: list[Any], x: Any) -> Any:
    return jax.lax.pmean(weights, "gpus")


def timed(body: Callable[[], Any], batches: int, steps: int) -> list[float]:
    took = []
    for _ in range(WARM):
        made = body()
    for _ in range(batches):
        jax.block_until_ready(made)
        begun = time.perf_counter()
        for _ in range(steps):
            made = body()
            if not GPU:  # where devices are threads, steps that wait for each other may take all of them
                jax.block_until_ready(made)
        jax.block_until_ready(made)
        took.append((time.perf_counter() - begun) * 1e3 / steps)
    return took


def main() -> None:
    count = jax.local_device_count()
    keys = jax.random.split(jax.random.PRNGKey(0), LAYERS + 1)
    kind = jnp.bfloat16
    one = [jax.random.normal(key, (WIDTH, WIDTH), kind) * WIDTH**-0.5 for key in keys[:LAYERS]]
    weights = [jnp.broadcast_to(weight, (count, WIDTH, WIDTH)) for weight in one]
    # Replicated once, by the program itself, as pmap would do anew in every step.
    weights = jax.pmap(lambda *given: list(given))(*weights)
    x = jax.pmap(lambda given: given)(jax.random.normal(keys[LAYERS], (count, TOKENS, WIDTH), kind))
    parts = {"whole": whole, "computation": computation, "communication": communication}

    def turn(request: Any) -> dict[str, Any]:
        part, batches, steps = request
        return {"ms": timed(lambda: parts[part](weights, x), batches, steps)}

    serve({"jax": jax.__version__, "gpus": count}, turn)
    value, gradients = whole(weights, x)
    made = hashlib.sha256(b"".join(jax.device_get(part).tobytes() for part in (value, gradients[0])))
    say({"digest": made.hexdigest()[:16]})


if __name__ == "__main__":
    main()
