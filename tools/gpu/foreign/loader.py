"""loader.py timm|torch_geometric: train a ResNet behind the package's loader with a copy stream."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import torch
import torchvision

STEPS, WARM, BATCH = 200, 15, 128
device = torch.device("cuda")


class Images:
    """Batches that are ready in pinned memory."""

    def __init__(self, dtype: torch.dtype) -> None:
        draw = torch.Generator().manual_seed(0)
        size = (4, BATCH, 3, 224, 224)
        images = torch.randint(0, 256, size, generator=draw, dtype=torch.uint8)
        self.images = [one.to(dtype).pin_memory() for one in images]
        self.labels = torch.randint(0, 1000, (4, BATCH), generator=draw).pin_memory()

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for step in range(STEPS):
            yield self.images[step % 4], self.labels[step % 4]

    def __len__(self) -> int:
        return STEPS


if sys.argv[1] == "timm":
    from timm.data.loader import PrefetchLoader

    loader = PrefetchLoader(Images(torch.uint8), device=device, img_dtype=torch.float32)
else:
    from torch_geometric.loader import PrefetchLoader

    loader = PrefetchLoader(Images(torch.float32), device=device)
torch.manual_seed(0)
torch.backends.cudnn.deterministic = True
model = torchvision.models.resnet18().to(device, memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
times, loss = [], torch.zeros(())
for images, labels in loader:
    with torch.autocast("cuda", torch.bfloat16):
        scaled = images if sys.argv[1] == "timm" else images / 255
        loss = torch.nn.functional.cross_entropy(model(scaled.to(memory_format=torch.channels_last)), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    times.append(time.perf_counter())
    if len(times) == WARM:
        torch.cuda.synchronize()
        times[-1] = time.perf_counter()
torch.cuda.synchronize()
print(f"{1000 * (time.perf_counter() - times[WARM - 1]) / (STEPS - WARM):.4f} ms a step, loss {loss.item():.2f}")
