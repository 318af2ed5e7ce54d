"""Serve random prompts to a small Llama of random weights by transformers' continuous batching."""

import time

import torch
from transformers import ContinuousBatchingConfig, GenerationConfig, LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=8192,
    hidden_size=1024,
    intermediate_size=2816,
    num_hidden_layers=8,
    num_attention_heads=16,
    num_key_value_heads=4,
    max_position_embeddings=2048,
)
model = LlamaForCausalLM(config).to("cuda", torch.bfloat16).eval()
wanted = GenerationConfig(max_new_tokens=64, do_sample=False, eos_token_id=-1, pad_token_id=0)
batching = ContinuousBatchingConfig(num_blocks=512, use_async_batching=True, use_cuda_graph=True)
draw = torch.Generator().manual_seed(0)
prompts = [torch.randint(8192, (32 + 4 * number,), generator=draw).tolist() for number in range(64)]
for _ in range(2):  # the first captures graphs
    begun = time.perf_counter()
    answers = model.generate_batch(prompts, wanted, batching, persistent_manager=True)
    seconds = time.perf_counter() - begun
tokens = sum(len(answer.generated_tokens) for answer in answers.values())
print(f"{tokens} tokens, {tokens / seconds:.1f} tokens/s")
model.destroy_cached_continuous_batching_manager()
