import textwrap

PROGRAM = textwrap.dedent("""
    import os, sys, tempfile
    import torch, torch.distributed as dist, torch.multiprocessing as mp

    def work(rank, store):
        import cuda_morph_sim.device
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
        torch.sim.set_device(rank)
        t = torch.full((3,), rank + 1.0, device="sim")
        dist.all_reduce(t)
        assert t.tolist() == [3] * 3 and t.device.index == rank
        work = dist.all_reduce(t, async_op=True)
        work.wait()
        assert t.tolist() == [6] * 3
        parts = [torch.zeros(2, device="sim") for _ in range(2)]
        dist.all_gather(parts, torch.full((2,), float(rank), device="sim"))
        assert parts[0].tolist() == [0, 0] and parts[1].tolist() == [1, 1]
        b = torch.full((2,), float(rank), device="sim")
        dist.broadcast(b, 1)
        assert b.tolist() == [1, 1]
        r = torch.zeros(2, device="sim")
        dist.reduce_scatter_tensor(r, torch.ones(4, device="sim"))
        assert r.tolist() == [2, 2]
        if rank == 0:
            dist.send(torch.ones(2, device="sim"), 1)
        else:
            q = torch.zeros(2, device="sim")
            dist.recv(q, 0)
            assert q.tolist() == [1, 1]
        dist.barrier()
        torch.manual_seed(0)
        model = torch.nn.parallel.DistributedDataParallel(
            torch.nn.Linear(4, 2).to("sim"), device_ids=[rank])
        model(torch.full((5, 4), rank + 1.0, device="sim")).sum().backward()
        assert torch.allclose(model.module.weight.grad, torch.full((2, 4), 7.5, device="sim"))
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        sharded = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)).to("sim")
        fully_shard(sharded, mesh=init_device_mesh("sim", (2,)))
        sharded(torch.ones(2, 4, device="sim")).sum().backward()
        assert all(p.grad is not None for p in sharded.parameters())
        dist.destroy_process_group()

    if __name__ == "__main__":
        store = os.path.join(tempfile.mkdtemp(), "store")
        mp.spawn(work, (store,), 2)
        print("both ranks done")
""")


def test_gloo_ddp_and_sharding_on_device_tensors(python, tmp_path):
    script = tmp_path / "ranks.py"
    script.write_text(PROGRAM)
    done = python(
        f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')", expect=None
    )
    if done.returncode != 0 and "runpy" in done.stderr:
        raise AssertionError(done.stderr)
    assert "both ranks done" in done.stdout, done.stdout + done.stderr


def test_registering_twice_changes_nothing(sim):
    from torch.distributed import Backend

    assert sim.register_collectives()
    assert sim.register_collectives()
    assert Backend.backend_capability["gloo"].count("sim") == 1
    assert Backend.default_device_backend_map["sim"] == "gloo"
