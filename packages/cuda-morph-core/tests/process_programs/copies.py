"""Sends tensors of the device to a spawned process and back, and prints what arrived."""

import torch
import torch.multiprocessing as mp


def double(tasks, results):
    while (tensor := tasks.get()) is not None:
        seen = type(tensor).__name__, str(tensor.device), tensor.requires_grad
        doubled = tensor.detach() * 2
        seen += (tensor.detach().cpu().to_dense().tolist(),)
        tensor.detach().mul_(7)
        results.put(seen)
        results.put(doubled)


def weights(model, results):
    results.put(model.weight.tolist())


def refused(*arguments):
    try:
        mp.get_context("spawn").Process(target=weights, args=arguments).start()
    except RuntimeError as error:
        return type(error).__name__, str(error).partition(";")[0].partition(":")[0]
    return None


def main():
    context = mp.get_context("spawn")
    tasks, results = context.Queue(), context.Queue()
    process = context.Process(target=double, args=(tasks, results), daemon=True)
    process.start()
    device = torch.device("cuda", 1)
    plain = torch.ones(3, device="cuda")
    for tensor in (
        plain,
        torch.arange(4.0, device=device).view(2, 2).t().requires_grad_(),
        torch.nn.Parameter(torch.ones(2, device="cuda"), requires_grad=False),
        torch.eye(2, device="cuda").to_sparse(),
        torch.ones(2),
    ):
        before = tensor.detach().cpu().to_dense().clone()
        tasks.put(tensor)
        print(*results.get(timeout=60))
        back = results.get(timeout=60)
        assert back.device == tensor.device
        assert torch.equal(back.cpu().to_dense(), before * 2)
    print("the sender's values:", plain.tolist(), tensor.tolist())
    tasks.put(None)
    process.join()
    model = torch.nn.Linear(1, 1, bias=False).cuda()
    print(*refused(model, results))
    print(*refused(torch.ones(1, device="cuda", requires_grad=True) * 2, results))
    frozen = model.requires_grad_(False)
    process = context.Process(target=weights, args=(frozen, results), daemon=True)
    process.start()
    assert results.get(timeout=60) == model.weight.tolist()
    process.join()
    print("frozen weights arrived")


if __name__ == "__main__":
    main()
