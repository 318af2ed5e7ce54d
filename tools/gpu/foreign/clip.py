"""clip.py FOLDER FRAMES: write ref.yuv, a deterministic moving picture of 1080p, and dist.yuv, a coarser one of it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

WIDTH, HEIGHT, BASES = 1920, 1080, 8
folder, frames = Path(sys.argv[1]), int(sys.argv[2])
draw = np.random.RandomState(1)
y, x = np.mgrid[:HEIGHT, :WIDTH]
smooth = 128 + 60 * np.sin(x / 37) * np.cos(y / 23) + 40 * np.sin((x + 2 * y) / 211)
gray = np.full(WIDTH * HEIGHT // 2, 128, np.uint8).tobytes()
pictures = [(smooth + draw.normal(0, 6, smooth.shape)).clip(0, 255).astype(np.uint8) for _ in range(BASES)]
for name, coarse in (("ref", False), ("dist", True)):
    part = folder / f"{name}.part"
    with part.open("wb") as file:
        for frame in range(frames):
            picture = np.roll(pictures[frame % BASES], 3 * frame, axis=1)
            file.write(((picture & 0xF0) | 8 if coarse else picture).tobytes() + gray)
    part.rename(folder / f"{name}.yuv")
