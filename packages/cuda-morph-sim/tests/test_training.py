import copy

import pytest
import torch
from torch import nn


def pair(module):
    return module, copy.deepcopy(module).to("sim")


def train(module, inputs, optimizer_class, steps=3, **options):
    optimizer = optimizer_class(module.parameters(), lr=0.01, **options)
    for _ in range(steps):
        optimizer.zero_grad()
        module(inputs).sin().mean().backward()
        nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
    return [parameter.detach().cpu() for parameter in module.parameters()]


@pytest.mark.parametrize("options", [{}, {"foreach": True}, {"fused": True}])
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
def test_a_convolutional_network_trains_like_on_the_cpu(sim, optimizer, options):
    torch.manual_seed(0)
    host, device = pair(
        nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2)
        )
    )
    x = torch.randn(4, 3, 8, 8)
    expected = train(host, x, optimizer, **options)
    torch.testing.assert_close(train(device, x.to("sim"), optimizer, **options), expected)


def test_a_transformer_trains_like_on_the_cpu(sim):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    host, device = pair(nn.TransformerEncoder(layer, 2))
    x = torch.randn(2, 5, 16)
    # Not Adam: the keys' bias has no gradient but rounding, which Adam would blow up.
    expected = train(host, x, torch.optim.SGD)
    torch.testing.assert_close(train(device, x.to("sim"), torch.optim.SGD), expected)
    mask = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    host.eval(), device.eval()
    with torch.no_grad():
        expected = host(x, src_key_padding_mask=mask)
        found = device(x.to("sim"), src_key_padding_mask=mask.to("sim"))
    torch.testing.assert_close(found.cpu()[:, :3], expected[:, :3])


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("bias", [True, False])
def test_recurrent_networks_match_the_cpu(sim, kind, bias):
    torch.manual_seed(0)
    host, device = pair(kind(4, 5, 2, batch_first=True, bidirectional=True, bias=bias))
    x = torch.randn(3, 6, 4)
    inputs = x.clone().requires_grad_(), x.to("sim").requires_grad_()
    results = [module(one) for module, one in zip((host, device), inputs, strict=True)]
    torch.testing.assert_close(results[1][0].cpu(), results[0][0])
    for output, hidden in results:
        final = hidden[0] if isinstance(hidden, tuple) else hidden
        (output.pow(2).sum() + final.sum()).backward()
    torch.testing.assert_close(inputs[1].grad.cpu(), inputs[0].grad)
    for one, other in zip(host.parameters(), device.parameters(), strict=True):
        torch.testing.assert_close(other.grad.cpu(), one.grad)


def test_only_the_cell_state_of_an_lstm_may_matter(sim):
    host, device = pair(nn.LSTMCell(3, 4))
    x = torch.randn(2, 3)
    host(x)[1].sum().backward()
    device(x.to("sim"))[1].sum().backward()
    torch.testing.assert_close(device.weight_ih.grad.cpu(), host.weight_ih.grad)


def test_packed_sequences_keep_batch_sizes_on_the_host(sim):
    torch.manual_seed(0)
    host, device = pair(nn.LSTM(4, 5, batch_first=True))
    x, lengths = torch.randn(3, 6, 4), torch.tensor([6, 4, 2])
    outputs = []
    for module, where in ((host, "cpu"), (device, "sim")):
        packed = nn.utils.rnn.pack_padded_sequence(x.to(where), lengths, batch_first=True)
        assert packed.batch_sizes.device.type == "cpu"
        assert packed.data.device.type == where
        outputs.append(nn.utils.rnn.pad_packed_sequence(module(packed)[0], batch_first=True)[0])
    torch.testing.assert_close(outputs[1].cpu(), outputs[0])


def test_attention_matches_the_cpu(sim):
    q = torch.randn(2, 4, 8, 16)
    attend = nn.functional.scaled_dot_product_attention
    for options in ({}, {"is_causal": True}, {"attn_mask": torch.zeros(8, 8)}):
        there = {k: v.to("sim") if torch.is_tensor(v) else v for k, v in options.items()}
        found = attend(*[q.to("sim")] * 3, **there)
        torch.testing.assert_close(found.cpu(), attend(q, q, q, **options))


def test_checkpointing_repeats_dropout(sim):
    from torch.utils.checkpoint import checkpoint

    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).to("sim")
    for reentrant in (True, False):
        gradients = []
        for run in (module, lambda x, r=reentrant: checkpoint(module, x, use_reentrant=r)):
            torch.manual_seed(1)
            x = torch.ones(3, 4, device="sim", requires_grad=True)
            run(x).sum().backward()
            gradients.append(x.grad)
        torch.testing.assert_close(gradients[0], gradients[1])


def test_threads_train_on_their_own_devices(sim):
    from concurrent.futures import ThreadPoolExecutor

    def work(index):
        sim.set_device(index % 2)
        module = nn.Linear(8, 8).to("sim")
        for _ in range(50):
            module(torch.randn(4, 8, device="sim")).sum().backward()
        return module.weight.grad.device.index == index % 2

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_sparse_gradients(sim):
    embedding = nn.Embedding(5, 3, sparse=True).to("sim")
    embedding(torch.tensor([1, 2, 1], device="sim")).sum().backward()
    assert embedding.weight.grad.is_sparse
    assert embedding.weight.grad.to_dense()[1].tolist() == [2, 2, 2]
    torch.optim.SparseAdam(embedding.parameters()).step()
