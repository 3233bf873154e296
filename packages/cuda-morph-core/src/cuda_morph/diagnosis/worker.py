"""The child process of ``cuda-morph doctor``: runs code of plugins and vendors, one thing a line.

Its standard output belongs to the parent; what the code under examination prints goes elsewhere.
Every thing is announced before it starts, so the parent knows what a process died of.
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from cuda_morph.diagnosis.entry_points import in_group
from cuda_morph.hook_calls import describe
from cuda_morph.plugins import collect, get_plugin
from cuda_morph.worker_process import Answers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cuda_morph.records import HealthCheck

AUTOLOAD_GROUP = "torch.backends"


def main(kind: str, requests: str) -> None:
    """Answers requests.

    Args:
        kind: A key of `KINDS`.
        requests: JSON list of pairs: a subject, and the index of the first of its things to do.
    """
    answers = Answers()
    for subject, first in json.loads(requests):
        for line in KINDS[kind](subject, first):
            answers.tell({"subject": subject, **line})
    # Threads and exit handlers of a vendor's library have no say any more.
    os._exit(0)


def _checks(plugin: str, first: int) -> Iterator[dict[str, Any]]:
    yield _begin(0, id=f"{plugin}.checks", summary="The plugin lists its checks")
    try:
        checks = [record for _, record in collect("cuda_morph_health_checks", plugin=plugin)]
    except Exception as error:  # noqa: BLE001 - foreign code
        yield {"event": "end", "error": describe(error)}
        return
    yield {"event": "end", "listed": len(checks)}
    for index, check in enumerate(checks[first:], first):
        yield _begin(index + 1, id=check.id, summary=check.summary, fix=check.fix)
        yield _contained(partial(_run, check))


def _run(check: HealthCheck) -> dict[str, Any]:
    result = check.run()
    if result.ok not in (True, False, None):
        raise TypeError(f"the check's ok must be True, False or None, got {result.ok!r}")
    return {"ok": result.ok, "message": str(result.message)}


def _detect(plugin: str, _first: int) -> Iterator[dict[str, Any]]:
    yield _begin(0, id=f"{plugin}.detection", summary="The plugin looks for its devices")
    yield _contained(lambda: {"row": get_plugin(plugin, detect=True).as_dict()})


def _autoload(name: str, _first: int) -> Iterator[dict[str, Any]]:
    yield _begin(0, id=f"autoload.{name}", summary="PyTorch loads it at import")

    def load() -> dict[str, Any]:
        os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
        __import__("torch")
        for found in in_group(AUTOLOAD_GROUP):
            if found.name == name:
                found.load()()
        return {"ok": True}

    yield _contained(load)


def _platform(name: str, _first: int) -> Iterator[dict[str, Any]]:
    yield _begin(0, id=f"asked.{name}", summary="vLLM asks whether its device is here")

    def ask() -> dict[str, Any]:
        found = [one for one in in_group("vllm.platform_plugins") if one.name == name]
        if len(found) > 1:
            owners = " and ".join(sorted(entry.dist.name for entry in found if entry.dist))
            raise ValueError(f"{owners} register the same name")
        answer = found[0].load()()
        if answer is not None and not isinstance(answer, str):
            raise TypeError(f"it must answer with the name of a class or None, got {answer!r:.60}")
        return {"active": answer}

    yield _contained(ask)


def _compile(backend: str, _first: int, *, run: bool = False) -> Iterator[dict[str, Any]]:
    yield _begin(0, id="compile", summary="PyTorch's compilers are asked")

    def ask() -> dict[str, Any]:
        from cuda_morph.diagnosis import compile_trial

        return compile_trial.ask(backend)

    found = _contained(ask)
    yield found
    if run and "error" not in found:
        yield _begin(1, id="compile", summary="A function is compiled")

        def compare() -> dict[str, Any]:
            from cuda_morph.diagnosis import compile_trial

            return compile_trial.compile_and_compare(backend)

        yield _contained(compare)


def _begin(index: int, **more: str) -> dict[str, Any]:
    return {"event": "begin", "index": index, **more}


def _contained(act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Returns the outcome of foreign code; an error with the causes behind it, the first last."""
    try:
        return {"event": "end", **act()}
    except BaseException as error:  # noqa: BLE001 - also SystemExit: the next thing must run
        return {"event": "end", "error": "; because of ".join(_chain(error))}


def _chain(error: BaseException) -> list[str]:
    found: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        text = " ".join(describe(current).split())
        if text not in found:
            found.append(text)
        current = current.__cause__ or current.__context__
    return found


KINDS: dict[str, Callable[[str, int], Iterator[dict[str, Any]]]] = {
    "checks": _checks,
    "detect": _detect,
    "autoload": _autoload,
    "platform": _platform,
    "compile": _compile,
    "compile-and-run": partial(_compile, run=True),
}

if __name__ == "__main__":
    main(*sys.argv[1:])
