"""Transcribe with Whisper on the GPU in half precision, from a checkpoint with random weights."""

import tempfile
from pathlib import Path

import numpy as np
import torch
import whisper

# A checkpoint as whisper.load_model expects one, far smaller than "tiny" and never trained.
dims = whisper.ModelDimensions(
    n_mels=80,
    n_audio_ctx=1500,
    n_audio_state=64,
    n_audio_head=2,
    n_audio_layer=2,
    n_vocab=51865,
    n_text_ctx=448,
    n_text_state=64,
    n_text_head=2,
    n_text_layer=2,
)
torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "random.pt"
    network = whisper.model.Whisper(dims)
    torch.nn.init.normal_(network.decoder.token_embedding.weight, std=0.05)
    torch.nn.init.normal_(network.decoder.positional_embedding, std=0.02)  # left unset by Whisper
    torch.save({"dims": dims.__dict__, "model_state_dict": network.state_dict()}, path)
    model = whisper.load_model(str(path), device="cuda")

seconds = np.arange(5 * 16000) / 16000
audio = (0.3 * np.sin(2 * np.pi * 220 * seconds)).astype(np.float32)
mel = whisper.log_mel_spectrogram(whisper.pad_or_trim(audio), device="cuda")
options = whisper.DecodingOptions(language="en", sample_len=16, without_timestamps=True)
result = whisper.decode(model, mel.to(model.device), options)
print("tokens", *result.tokens)
print(f"average log probability {result.avg_logprob:.3f}")
print(f"audio features {result.audio_features.dtype} on {result.audio_features.device}")
