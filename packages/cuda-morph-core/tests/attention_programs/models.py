"""A tiny model of transformers: every attention implementation gives what eager gives on the CPU."""

from __future__ import annotations

import copy

import pytest
import torch

from cuda_morph.ecosystem.attention import answered

transformers = pytest.importorskip("transformers")

SIZES = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
IMPLEMENTATIONS = ("flash_attention_2", "sdpa", "cuda_morph", "eager")


def llama(implementation):
    config = transformers.LlamaConfig(**SIZES, attn_implementation=implementation)
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(config)


def mistral(implementation):
    config = transformers.MistralConfig(
        **SIZES, sliding_window=4, attn_implementation=implementation
    )
    torch.manual_seed(0)
    return transformers.MistralForCausalLM(config)


def batch(device):
    ids = torch.randint(1, 64, (2, 11), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[1, :4] = 0
    return {"input_ids": ids.to(device), "attention_mask": mask.to(device)}


def compare(world, make):
    wanted = make("eager").eval()(**batch("cpu")).logits
    real = batch("cpu")["attention_mask"].bool()
    for implementation in IMPLEMENTATIONS:
        before = sum(answered().values())
        model = make(implementation).eval().to(world.device)
        assert model.config._attn_implementation == implementation
        logits = model(**batch(world.device)).logits.cpu()
        torch.testing.assert_close(
            logits[real],
            wanted[real],
            rtol=1e-4,
            atol=1e-4,
            msg=lambda m, i=implementation: f"{i}: {m}",
        )
        ran = sum(answered().values()) - before
        ours = implementation in {"flash_attention_2", "cuda_morph"}
        assert (ran > 0) == ours, (implementation, ran)


def check_llama_with_padding(world):
    compare(world, llama)


def check_mistral_with_a_sliding_window(world):
    compare(world, mistral)


def check_training_gives_the_gradients_of_eager(world):
    ids = batch("cpu")["input_ids"]
    eager = llama("eager").train()
    eager(input_ids=ids, labels=ids).loss.backward()
    for implementation in IMPLEMENTATIONS:
        model = llama(implementation).train().to(world.device)
        loss = model(input_ids=ids.to(world.device), labels=ids.to(world.device)).loss
        loss.backward()
        for (name, mine), theirs in zip(model.named_parameters(), eager.parameters(), strict=True):
            torch.testing.assert_close(
                mine.grad.cpu(), theirs.grad, rtol=1e-3, atol=1e-5,
                msg=lambda m, n=name, i=implementation: f"{i} {n}: {m}",
            )  # fmt: skip


def check_generation_gives_the_tokens_of_eager(world):
    ids = batch("cpu")["input_ids"][:1]
    options = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0}
    wanted = llama("eager").eval().generate(ids, **options)
    for implementation in IMPLEMENTATIONS:
        model = llama(implementation).eval().to(world.device)
        made = model.generate(ids.to(world.device), **options).cpu()
        assert torch.equal(made, wanted), implementation
    assert copy.copy(options) == options
