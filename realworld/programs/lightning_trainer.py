"""Lightning's Trainer on a GPU with mixed precision, on Lightning's own demonstration model."""

import pytorch_lightning as pl
import torch
from pytorch_lightning.demos.boring_classes import BoringModel


class DeviceSeen(pl.Callback):
    def on_train_batch_end(self, _trainer, model, *_rest):
        self.device = next(model.parameters()).device


seen = DeviceSeen()
trainer = pl.Trainer(
    accelerator="gpu",
    devices=1,
    precision="16-mixed",
    max_epochs=2,
    limit_train_batches=8,
    limit_val_batches=2,
    callbacks=[seen],
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(BoringModel())
print("trained on", seen.device, "for", trainer.global_step, "steps")
print("GPU memory used:", torch.cuda.max_memory_allocated() > 0)
