"""Train a small character-level GPT on a play and let it write.

Needs one CUDA GPU, PyTorch, numpy and tqdm. By default it trains half way, saves a checkpoint,
drops everything, loads the checkpoint and trains the second half, so that a resume is part of
every run. Training metrics and the sampled text go to ``--out`` as well as to the screen.

    python train_char_gpt.py
    python train_char_gpt.py --steps 1000 --n-embd 192 --out runs/larger
    python train_char_gpt.py --resume runs/larger/checkpoint.pt --steps 2000
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

TEXT = Path(__file__).parent / "data" / "as_you_like_it.txt"


class Windows(Dataset):
    """Overlapping windows of the text, each with the same window moved on by one character."""

    def __init__(self, tokens: torch.Tensor, block_size: int) -> None:
        self.tokens = tokens
        self.block_size = block_size

    def __len__(self) -> int:
        return len(self.tokens) - self.block_size

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        window = self.tokens[index : index + self.block_size + 1]
        return window[:-1], window[1:]


class Block(nn.Module):
    """One transformer layer: causal self-attention, then a two-layer network."""

    def __init__(self, n_embd: int, n_head: int, dropout: float) -> None:
        super().__init__()
        self.n_head = n_head
        self.dropout = dropout
        self.norm1 = nn.LayerNorm(n_embd)
        self.qkv = nn.Linear(n_embd, 3 * n_embd)
        self.proj = nn.Linear(n_embd, n_embd)
        self.norm2 = nn.LayerNorm(n_embd)
        self.mlp = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd),
            nn.GELU(),
            nn.Linear(4 * n_embd, n_embd),
            nn.Dropout(dropout),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.n_head, width // self.n_head).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).split(width, dim=2)
        )
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class CharGPT(nn.Module):
    """A decoder-only transformer over characters."""

    def __init__(
        self,
        vocab_size: int,
        block_size: int,
        n_layer: int,
        n_head: int,
        n_embd: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.block_size = block_size
        self.tokens = nn.Embedding(vocab_size, n_embd)
        self.positions = nn.Embedding(block_size, n_embd)
        self.blocks = nn.Sequential(*(Block(n_embd, n_head, dropout) for _ in range(n_layer)))
        self.norm = nn.LayerNorm(n_embd)
        self.head = nn.Linear(n_embd, vocab_size, bias=False)
        self.apply(self._init)

    @staticmethod
    def _init(module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)

    def forward(
        self, ids: torch.Tensor, targets: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        positions = torch.arange(ids.shape[1], device="cuda")
        logits = self.head(self.norm(self.blocks(self.tokens(ids) + self.positions(positions))))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    @torch.no_grad()
    def generate(self, ids: torch.Tensor, length: int, temperature: float) -> torch.Tensor:
        for _ in range(length):
            logits, _ = self(ids[:, -self.block_size :])
            probabilities = F.softmax(logits[:, -1].float() / temperature, dim=-1)
            ids = torch.cat([ids, torch.multinomial(probabilities, 1)], dim=1)
        return ids


class Prefetcher:
    """Copies the next batch to the GPU on a stream of its own while the current one is in use."""

    def __init__(self, loader: DataLoader) -> None:
        self.batches = iter(loader)
        self.stream = torch.cuda.Stream()
        self.ready = self._copy()

    def _copy(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        batch = next(self.batches, None)
        if batch is None:
            return None
        with torch.cuda.stream(self.stream):
            return batch[0].cuda(non_blocking=True), batch[1].cuda(non_blocking=True)

    def __iter__(self):
        while self.ready is not None:
            torch.cuda.current_stream().wait_stream(self.stream)
            x, y = self.ready
            x.record_stream(torch.cuda.current_stream())
            y.record_stream(torch.cuda.current_stream())
            self.ready = self._copy()
            yield x, y


class Trainer:
    """The model and all that a training run has to remember between two steps."""

    def __init__(self, args: argparse.Namespace, text: str) -> None:
        self.args = args
        self.characters = sorted(set(text))
        index = {character: i for i, character in enumerate(self.characters)}
        tokens = torch.tensor([index[character] for character in text])
        split = int(0.9 * len(tokens))
        self.train_set = Windows(tokens[:split], args.block_size)
        self.val_set = Windows(tokens[split:], args.block_size)
        self.model = CharGPT(
            len(self.characters),
            args.block_size,
            args.n_layer,
            args.n_head,
            args.n_embd,
            args.dropout,
        ).cuda()
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=args.lr, betas=(0.9, 0.99), weight_decay=0.1
        )
        self.scaler = torch.cuda.amp.GradScaler()
        self.step = 0
        self.losses: list[float] = []
        self.gpu_ms = 0.0

    def learning_rate(self) -> float:
        warmup = min(1.0, (self.step + 1) / 20)
        decay = 0.5 * (1 + math.cos(math.pi * min(1.0, self.step / self.args.steps)))
        return self.args.lr * warmup * (0.1 + 0.9 * decay)

    def train_step(self, x: torch.Tensor, y: torch.Tensor) -> float:
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate()
        with torch.cuda.amp.autocast():
            _, loss = self.model(x, y)
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.step += 1
        return loss.item()

    def train(self, until: int) -> None:
        args = self.args
        order = torch.Generator().manual_seed(args.seed + self.step)
        sampler = torch.utils.data.RandomSampler(
            self.train_set, num_samples=(until - self.step) * args.batch_size, generator=order
        )
        loader = DataLoader(
            self.train_set,
            batch_size=args.batch_size,
            sampler=sampler,
            num_workers=args.workers,
            pin_memory=True,
        )
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        self.model.train()
        bar = tqdm(total=args.steps, initial=self.step, unit="step", file=sys.stdout)
        with bar:
            for x, y in Prefetcher(loader):
                start.record()
                self.losses.append(self.train_step(x, y))
                end.record()
                torch.cuda.synchronize()
                self.gpu_ms += start.elapsed_time(end)
                bar.set_postfix(loss=f"{self.losses[-1]:.3f}", refresh=False)
                bar.update()

    @torch.no_grad()
    def evaluate(self, batches: int = 8) -> float:
        self.model.eval()
        order = torch.Generator().manual_seed(0)
        picks = torch.randint(len(self.val_set), (batches, self.args.batch_size), generator=order)
        total = 0.0
        for rows in picks:
            x = torch.stack([self.val_set[int(i)][0] for i in rows]).cuda()
            y = torch.stack([self.val_set[int(i)][1] for i in rows]).cuda()
            with torch.cuda.amp.autocast():
                _, loss = self.model(x, y)
            total += loss.item()
        return total / batches

    def sample(self, length: int) -> str:
        self.model.eval()
        start = torch.tensor([[self.characters.index("\n")]], device="cuda")
        ids = self.model.generate(start, length, temperature=0.8)
        return "".join(self.characters[i] for i in ids[0].tolist()).strip("\n")

    def save(self, path: Path) -> None:
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "step": self.step,
            "losses": self.losses,
            "gpu_ms": self.gpu_ms,
            "cuda_rng": torch.cuda.get_rng_state(),
        }
        torch.save(state, path)

    def load(self, path: Path) -> None:
        state = torch.load(path, map_location="cuda")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scaler.load_state_dict(state["scaler"])
        self.step = state["step"]
        self.losses = state["losses"]
        self.gpu_ms = state["gpu_ms"]
        torch.cuda.set_rng_state(state["cuda_rng"].cpu())


def describe_gpu() -> None:
    properties = torch.cuda.get_device_properties(0)
    print(f"GPU 0 of {torch.cuda.device_count()}: {torch.cuda.get_device_name(0)}")
    print(f"memory {properties.total_memory / 2**30:.1f} GiB, PyTorch {torch.__version__}")


def train_in_two_halves(args: argparse.Namespace, text: str, checkpoint: Path) -> Trainer:
    trainer = Trainer(args, text)
    parameters = sum(p.numel() for p in trainer.model.parameters())
    print(f"{parameters:,} parameters on {next(trainer.model.parameters()).device}")
    print(f"{len(text):,} characters, {len(trainer.characters)} different")
    print(f"validation loss before training {trainer.evaluate():.4f}")
    trainer.train(until=args.steps // 2)
    before = trainer.evaluate()
    trainer.save(checkpoint)
    print(f"stopped at step {trainer.step}, validation loss {before:.4f}, saved {checkpoint}")

    del trainer
    torch.cuda.empty_cache()
    trainer = Trainer(args, text)
    trainer.load(checkpoint)
    after = trainer.evaluate()
    print(f"resumed at step {trainer.step}, validation loss {after:.4f}")
    if abs(after - before) > 1e-3:
        sys.exit(f"the checkpoint did not restore the model: {before:.4f} became {after:.4f}")
    trainer.train(until=args.steps)
    return trainer


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a character-level GPT on one CUDA GPU.")
    parser.add_argument("--steps", type=int, default=400, help="training steps in total")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--block-size", type=int, default=64, help="characters seen at once")
    parser.add_argument("--n-layer", type=int, default=3)
    parser.add_argument("--n-head", type=int, default=4)
    parser.add_argument("--n-embd", type=int, default=128)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--workers", type=int, default=2, help="data loading processes")
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--sample", type=int, default=400, help="characters to write at the end")
    parser.add_argument("--text", type=Path, default=TEXT, help="the text to learn from")
    parser.add_argument("--out", type=Path, default=Path("out/char_gpt"))
    parser.add_argument("--resume", type=Path, help="continue from this checkpoint to --steps")
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    torch.manual_seed(args.seed)
    torch.cuda.manual_seed_all(args.seed)
    describe_gpu()
    torch.cuda.set_device(0)
    torch.cuda.reset_peak_memory_stats()
    args.out.mkdir(parents=True, exist_ok=True)
    checkpoint = args.out / "checkpoint.pt"
    text = args.text.read_text(encoding="utf-8")

    started = time.perf_counter()
    if args.resume:
        trainer = Trainer(args, text)
        trainer.load(args.resume)
        print(f"resumed at step {trainer.step}, validation loss {trainer.evaluate():.4f}")
        trainer.train(until=args.steps)
    else:
        trainer = train_in_two_halves(args, text, checkpoint)
    seconds = time.perf_counter() - started
    trainer.save(checkpoint)

    val_loss = trainer.evaluate()
    peak = torch.cuda.max_memory_allocated()
    print(f"finished step {trainer.step}: training loss {trainer.losses[-1]:.4f}", end=", ")
    print(f"validation loss {val_loss:.4f}")
    print(
        f"{seconds:.1f} s in all, {trainer.gpu_ms / 1000:.1f} s of it in training steps", end=", "
    )
    print(f"peak GPU memory {peak / 2**20:.1f} MiB")
    sample = trainer.sample(args.sample)
    print(f"\n{sample}")
    (args.out / "sample.txt").write_text(sample + "\n", encoding="utf-8")
    metrics = {"losses": trainer.losses, "val_loss": val_loss, "peak_bytes": peak}
    (args.out / "metrics.json").write_text(json.dumps(metrics), encoding="utf-8")


if __name__ == "__main__":
    main()
