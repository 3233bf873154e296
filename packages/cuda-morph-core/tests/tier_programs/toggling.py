"""Activation and deactivation over and over while other threads use PyTorch."""

from __future__ import annotations

import sys
import threading
import time

import torch

import cuda_morph

EXPECTED = (AssertionError, RuntimeError)
"""What PyTorch raises for a CUDA string while cuda-morph is not active."""


def toggle_under_threads(activate, rounds, world):
    """Returns what went wrong on the threads and how often they went round."""
    failures, counts, stop = [], [0] * 4, threading.Event()
    places = {world.device_type, "cuda"}

    def work(number):
        try:
            while not stop.is_set():
                bystander()
                try:
                    place = torch.empty(1, device="cuda").device.type
                    assert place in places, place
                except EXPECTED as error:
                    if str(error) in places:
                        failures.append(repr(error))
                counts[number] += 1
                time.sleep(0.0002)  # leaves the lock to the thread that toggles
        except BaseException as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0002)  # threads meet in more places, and sooner
    try:
        for _ in range(rounds):
            activate()
            cuda_morph.deactivate()
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        for thread in threads:
            thread.join()
    return failures, sum(counts)


def bystander():
    """Work that has nothing to do with CUDA."""
    value = torch.zeros(4, device="cpu").to(torch.float64) + 1
    assert value.sum().item() == 4
    assert torch.device("cpu").type == "cpu"
    assert torch.device("meta", 1).index == 1
    assert value.to("cpu").device.type == "cpu"
