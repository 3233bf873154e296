"""Train with PyTorch Lightning on a GPU: its own demo model, Trainer(accelerator="gpu")."""

import pytorch_lightning as pl
import torch
from pytorch_lightning.demos.boring_classes import BoringModel


class Model(BoringModel):
    def training_step(self, batch, batch_idx):
        output = super().training_step(batch, batch_idx)
        self.log("train_loss", output["loss"])
        return output


pl.seed_everything(0)
model = Model()
trainer = pl.Trainer(
    accelerator="gpu",
    devices=1,
    max_epochs=2,
    limit_train_batches=32,
    limit_val_batches=8,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
)
trainer.fit(model)
loss = trainer.callback_metrics["train_loss"]
print(f"loss {loss.item():.4f} on {trainer.strategy.root_device}, {type(trainer.accelerator).__name__}")
print(f"batches went to {loss.device}, cuda there: {torch.cuda.is_available()}")
