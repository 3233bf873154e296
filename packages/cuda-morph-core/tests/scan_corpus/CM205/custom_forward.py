import torch


class Op(torch.autograd.Function):
    @staticmethod
    @torch.cuda.amp.custom_fwd  # >> CM205
    def forward(ctx, x):
        return x
