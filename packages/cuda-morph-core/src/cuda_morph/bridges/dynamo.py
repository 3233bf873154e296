"""``x.is_cuda`` in compiled code: Dynamo answers as the running program would.

Upstream: ``torch/_dynamo/variables/tensor.py`` folds ``is_cuda`` to ``device.type == "cuda"``.
Where devices keep their own name that is False, while the tensor itself says True. Can go when
Dynamo asks the tensor. Dynamo is not loaded for it: the change is made when a program first
compiles.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cuda_morph.import_watch import after_import

if TYPE_CHECKING:
    from cuda_morph.interception.tier import Target
    from cuda_morph.patching import Journal

_MODULE = "torch._dynamo.variables.tensor"


def apply(journal: Journal, target: Target) -> None:
    """Redirects Dynamo's answer now, or as soon as Dynamo is loaded."""
    journal.on_rollback(after_import(_MODULE, lambda: _redirect(journal, target)))


def _redirect(journal: Journal, target: Target) -> None:
    tensors: Any = importlib.import_module(_MODULE)
    names = {target.device_type, "cuda"}
    native_packages = target.policy.native_packages if target.policy.by_frame else frozenset()

    def is_cuda(variable: Any, tracer: Any) -> Any:
        if variable.device is None:
            return None
        reader = str(tracer.f_globals.get("__name__", "")).partition(".")[0]
        answer = variable.device.type in names and reader not in native_packages
        return tensors.VariableTracker.build(tracer, answer)

    journal.redirect_function(tensors.TensorVariable.method_attr_is_cuda, is_cuda)
