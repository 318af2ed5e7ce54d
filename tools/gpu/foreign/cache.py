"""cache.py: generate with the offloaded cache of transformers, whose stream fetches the next layer's from the host."""

from __future__ import annotations

import hashlib
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM

BATCH, PROMPT, TOKENS, WORDS = 8, 1024, 128, 8000

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
config = LlamaConfig(
    vocab_size=WORDS,
    hidden_size=1024,
    intermediate_size=2816,
    num_hidden_layers=16,
    num_attention_heads=8,
    attn_implementation="sdpa",
)
model = LlamaForCausalLM(config).to(device, torch.bfloat16).eval()
prompt = torch.randint(3, WORDS, (BATCH, PROMPT), generator=torch.Generator().manual_seed(1)).to(device)
seconds, result = 0.0, prompt
for tokens in (4, TOKENS):  # the first warms up
    begun = time.perf_counter()
    result = model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        cache_implementation="offloaded",
        max_new_tokens=tokens,
        min_new_tokens=tokens,
        do_sample=False,
        pad_token_id=0,
    )
    result = result.cpu()
    seconds = time.perf_counter() - begun
digest = hashlib.md5(result.numpy().tobytes()).hexdigest()
print(f"{1000 * seconds / TOKENS:.4f} ms a token, tokens {digest}")
