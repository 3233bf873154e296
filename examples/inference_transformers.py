"""Generate text tokens with a small Llama model of Hugging Face transformers on a CUDA GPU.

The model is built from a configuration with random weights, so nothing is downloaded: the tokens
mean nothing, but the same seed gives the same model, and decoding is greedy, so two runs have to
print the same tokens.

    python inference_transformers.py
    python inference_transformers.py --device cpu --json tokens.json
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def build_model(seed: int) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=1000,
        hidden_size=128,
        intermediate_size=352,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=4,
        max_position_embeddings=512,
        initializer_range=0.2,  # wide enough for tokens that differ from each other
        bos_token_id=1,
        eos_token_id=None,  # always generate as many tokens as asked for
        pad_token_id=0,
    )
    return LlamaForCausalLM(config).eval()


def main() -> None:
    parser = argparse.ArgumentParser(description="Greedy generation with a random Llama model.")
    parser.add_argument("--device", default="cuda", help="where to run (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of weights and prompts")
    parser.add_argument("--batch-size", type=int, default=2)
    parser.add_argument("--prompt-length", type=int, default=12)
    parser.add_argument("--new-tokens", type=int, default=48)
    parser.add_argument("--json", type=Path, help="also write the tokens to this file")
    args = parser.parse_args()

    model = build_model(args.seed)
    generator = torch.Generator().manual_seed(args.seed)
    shape = (args.batch_size, args.prompt_length)
    prompt = torch.randint(2, model.config.vocab_size, shape, generator=generator)
    if args.device == "cuda":
        model = model.cuda()
        prompt = prompt.cuda()
    else:
        model = model.to(args.device)
        prompt = prompt.to(args.device)

    started = time.perf_counter()
    with torch.inference_mode():
        output = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=args.new_tokens,
            do_sample=False,
        )
    seconds = time.perf_counter() - started

    tokens = output[:, args.prompt_length :].tolist()
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{parameters:,} parameters on {model.device}, prompt on {prompt.device}")
    for row, generated in enumerate(tokens):
        print(f"tokens {row}: {' '.join(str(token) for token in generated)}")
    print(f"{args.batch_size * args.new_tokens / seconds:.0f} tokens/s")
    if args.json:
        result = {"device": str(output.device), "seed": args.seed, "tokens": tokens}
        args.json.write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
