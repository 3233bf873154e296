"""Runs checks against an accelerator that is wrong in one place each, and reports what they said.

Usage: python break_checks.py BACKEND VIEW REPORT
"""

from __future__ import annotations

import copy
import functools
import json
import os
import sys
import traceback
import warnings
from pathlib import Path

import torch
import torch.cuda.nccl
import torch.cuda.tunable
import torch.nested

from cuda_morph_conformance.checks import load_all
from cuda_morph_conformance.registry import CHECKS, CheckFailed
from cuda_morph_conformance.subject import Subject

BACKEND, VIEW, REPORT = sys.argv[1:]
ROOTS = {
    "torch": torch,
    "cuda": torch.cuda,
    "Tensor": torch.Tensor,
    "Module": torch.nn.Module,
    "copy": copy,
}


def judge(check, subject):
    warnings.simplefilter("ignore")
    try:
        check.run(subject)
    except CheckFailed as failure:
        return f"failed: {failure}"
    except BaseException as error:
        return f"raised {error!r}: {traceback.format_exc()[-300:]}"
    return "passed"


def put_in_place(name, make):
    root, *path, last = name.split(".")
    owner = functools.reduce(getattr, path, ROOTS[root])
    setattr(owner, last, make(getattr(owner, last)))


def in_a_child(work):
    """Returns what `work` returns in a copy of this process, which is thrown away."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        text = work()
        os.write(writer, text.encode()[:4000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text or "died"


def main():
    load_all()
    subject = Subject(BACKEND, view=VIEW)
    with subject.activate():
        from mutations import MUTATIONS

        report = {}
        for check_id, (name, make) in MUTATIONS.items():
            check = CHECKS[check_id]

            def broken(check=check, name=name, make=make):
                put_in_place(name, make)
                return judge(check, subject)

            right = in_a_child(lambda check=check: judge(check, subject))
            report[check_id] = (right, in_a_child(broken))
        Path(REPORT).write_text(json.dumps(report))


main()
