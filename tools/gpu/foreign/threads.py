"""threads.py: eight threads of one process serve ResNet-18 on one device, each by a stream of its own."""

from __future__ import annotations

import threading
import time

import torch
import torchvision

THREADS, BATCH, WARM, REQUESTS = 8, 8, 20, 250

torch.manual_seed(0)
device = torch.device("cuda", 0)
model = torchvision.models.resnet18().to(device, torch.float16, memory_format=torch.channels_last).eval()
images = torch.rand(BATCH, 3, 224, 224, generator=torch.Generator().manual_seed(1)).half().pin_memory()
barrier = threading.Barrier(THREADS + 1)
found: list[int] = [-1] * THREADS


def serve(number: int) -> None:
    stream = torch.cuda.Stream(device)
    result = torch.empty(BATCH, 1000, dtype=torch.float16, pin_memory=True)
    with torch.inference_mode(), torch.cuda.stream(stream):
        for request in range(WARM + REQUESTS):
            if request == WARM:
                barrier.wait()
            batch = images.to(device, non_blocking=True).to(memory_format=torch.channels_last)
            result.copy_(model(batch), non_blocking=True)
            stream.synchronize()
    found[number] = int(result.float().argmax())
    barrier.wait()


threads = [threading.Thread(target=serve, args=(number,)) for number in range(THREADS)]
for thread in threads:
    thread.start()
barrier.wait()
begun = time.perf_counter()
barrier.wait()
seconds = time.perf_counter() - begun
for thread in threads:
    thread.join()
print(f"{THREADS * REQUESTS / seconds:.1f} requests/s, {len(set(found))} answer of {THREADS} threads")
