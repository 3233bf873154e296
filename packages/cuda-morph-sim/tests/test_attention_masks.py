"""``scaled_dot_product_attention`` with a mask and ``is_causal``, as on the CPU."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as attend

MASKS = {
    "bool": torch.tensor([[1, 1, 0, 1]] * 4, dtype=torch.bool),
    "float": torch.linspace(-2, 2, 16).reshape(4, 4),
}


def answer(device, mask, shape=(1, 2, 4, 8), **options):
    torch.manual_seed(0)
    query = torch.randn(shape).to(device).requires_grad_()
    out = attend(query, query, query, attn_mask=mask.to(device), is_causal=True, **options)
    out.square().sum().backward()
    return out.detach().cpu(), query.grad.cpu()


@pytest.mark.parametrize("kind", MASKS)
def test_both_are_taken_where_the_cpu_takes_both(sim, kind):
    for options in ({}, {"scale": 0.3}):
        for found, expected in zip(
            answer("sim", MASKS[kind], **options),
            answer("cpu", MASKS[kind], **options),
            strict=True,
        ):
            torch.testing.assert_close(found, expected)
    with torch.inference_mode():
        query = torch.ones(1, 1, 4, 8, device="sim")
        attend(query, query, query, attn_mask=MASKS[kind].to("sim"), is_causal=True)


@pytest.mark.parametrize(
    "options", [{"shape": (2, 4, 8)}, {"dropout_p": 0.5}], ids=["three dimensions", "dropout"]
)
def test_both_are_refused_where_the_cpu_refuses_both(sim, options):
    for device in ("cpu", "sim"):
        with pytest.raises(RuntimeError, match="should not be set when is_causal"):
            answer(device, MASKS["bool"], **options)
