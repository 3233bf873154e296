"""Train a small GPT with Megatron Core on one GPU, after its quick start, on tokens made here."""

import os
from functools import partial

import torch
from megatron.core import parallel_state
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.pipeline_parallel.schedules import get_forward_backward_func
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
from megatron.core.transformer.transformer_config import TransformerConfig

SEQUENCE, VOCABULARY, BATCH = 32, 64, 8


def initialize_distributed():
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "29511")
    torch.cuda.set_device(0)
    torch.distributed.init_process_group(backend="nccl", rank=0, world_size=1)
    parallel_state.initialize_model_parallel(1, 1)


def batches():
    """Sequences that count upwards from a random start."""
    device = torch.device("cuda", torch.cuda.current_device())
    positions = torch.arange(SEQUENCE, device=device).expand(BATCH, SEQUENCE)
    mask = torch.ones(1, 1, SEQUENCE, SEQUENCE, dtype=torch.bool, device=device).triu(1)
    while True:
        start = torch.randint(VOCABULARY, (BATCH, 1), device=device)
        tokens = (start + torch.arange(SEQUENCE + 1, device=device)) % VOCABULARY
        yield tokens[:, :-1], positions, mask, tokens[:, 1:]


def forward_step(data_iterator, model):
    tokens, positions, mask, labels = next(data_iterator)
    losses = model(tokens, positions, mask, labels=labels)

    def loss(output):
        mean = output.float().mean()
        return mean, {"loss": mean}

    return losses, partial(loss)


initialize_distributed()
model_parallel_cuda_manual_seed(123)
config = TransformerConfig(
    num_layers=2,
    hidden_size=64,
    num_attention_heads=4,
    use_cpu_initialization=True,
    pipeline_dtype=torch.float32,
)
model = GPTModel(
    config=config,
    transformer_layer_spec=get_gpt_layer_local_spec(),
    vocab_size=VOCABULARY,
    max_sequence_length=SEQUENCE,
)
model.to(torch.device("cuda"))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
run = get_forward_backward_func()
data = batches()
for step in range(60):
    optimizer.zero_grad()
    reduced = run(
        forward_step_func=forward_step,
        data_iterator=data,
        model=model,
        num_microbatches=1,
        seq_length=SEQUENCE,
        micro_batch_size=BATCH,
        decoder_seq_length=SEQUENCE,
        forward_only=False,
    )
    optimizer.step()
    if step % 20 == 0 or step == 59:
        loss = reduced[0]["loss"]
        print(f"step {step}: loss {loss.item():.4f} on {loss.device}")
print(f"collectives by {torch.distributed.get_backend()}")
torch.distributed.destroy_process_group()
