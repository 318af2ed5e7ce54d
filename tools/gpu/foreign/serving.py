"""serving.py: answer requests by continuous batching of transformers, with its three streams for copies and compute."""

from __future__ import annotations

import time

import torch
from transformers import ContinuousBatchingConfig, GenerationConfig, LlamaConfig, LlamaForCausalLM

REQUESTS, PROMPT, TOKENS, WORDS = 96, 96, 192, 8000

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
config = LlamaConfig(
    vocab_size=WORDS,
    hidden_size=1024,
    intermediate_size=2816,
    num_hidden_layers=12,
    num_attention_heads=16,
    num_key_value_heads=4,
    attn_implementation="paged|sdpa",
)
model = LlamaForCausalLM(config).to(device, torch.bfloat16).eval()
draw = torch.Generator().manual_seed(1)
prompts = [torch.randint(3, WORDS, (PROMPT + i % 32,), generator=draw).tolist() for i in range(REQUESTS)]
batching = ContinuousBatchingConfig(
    block_size=32, num_blocks=1024, max_batch_tokens=512, use_async_batching=device == "cuda", use_cuda_graph=False
)
wanted = GenerationConfig(max_new_tokens=TOKENS, do_sample=False, eos_token_id=-1, pad_token_id=0)
seconds = answered = 0.0
for chosen in (prompts[:4], prompts):  # the first warms up
    begun = time.perf_counter()
    results = model.generate_batch(chosen, generation_config=wanted, continuous_batching_config=batching)
    seconds = time.perf_counter() - begun
    answered = sum(len(result.generated_tokens) for result in results.values())
print(f"{seconds:.4f} s, {answered / seconds:.1f} tokens/s, {answered:.0f} tokens")
