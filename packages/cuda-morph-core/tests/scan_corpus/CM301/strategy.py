from lightning.pytorch.strategies import DDPStrategy

strategy = DDPStrategy(process_group_backend="nccl")  # >> CM301
