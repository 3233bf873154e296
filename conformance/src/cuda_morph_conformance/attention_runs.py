"""Calls of attention for the checks, and the proof of which implementation answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda_morph_conformance.attention_grid import TOLERANCE, difference
from cuda_morph_conformance.attention_reference import Case, reference
from cuda_morph_conformance.registry import require

if TYPE_CHECKING:
    from collections.abc import Callable

OTHERS = {"sdpa", "composed"}
"""Implementations of core, which answer where no kernel of the plugin does."""


def slopes_on(case: Case) -> Any:
    """Returns the case's ALiBi slopes on the device, or ``None``."""
    slopes = case.slopes()
    return None if slopes is None else slopes.cuda()


def by_flash_attn(query: Any, key: Any, value: Any, case: Case) -> tuple[Any, Any]:
    """Calls flash_attn_func, with logarithms."""
    from flash_attn import flash_attn_func

    out, lse, _ = flash_attn_func(query, key, value, **_options(case), return_attn_probs=True)
    return out, lse


def _output(query: Any, key: Any, value: Any, case: Case) -> tuple[Any, None]:
    from flash_attn import flash_attn_func

    return flash_attn_func(query, key, value, **_options(case)), None


def _options(case: Case) -> dict[str, Any]:
    return {
        "softmax_scale": case.scale,
        "causal": case.causal,
        "window_size": case.window,
        "softcap": case.softcap,
        "alibi_slopes": slopes_on(case),
    }


def require_same(seen: Any, expected: Any, what: str, dtype: Any = None) -> None:
    """Fail the running check unless a tensor is close to the reference.

    Args:
        seen: What the device computed.
        expected: The reference, in float64.
        what: What the tensor is, for the message.
        dtype: Dtype of the computation, if it is not that of `seen`.
    """
    require(seen.shape == expected.shape, f"{what}: shape {seen.shape}, not {expected.shape}")
    limit = TOLERANCE[str(dtype or seen.dtype).removeprefix("torch.")]
    theirs = expected.detach().cpu().double()
    error = float((seen.detach().cpu().double() - theirs).abs().max())
    size = max(1.0, float(theirs.abs().max()))
    require(error <= limit * size, f"{what} is off by {error:.2g}, more than {limit * size:.2g}")


def require_right(case: Case, *, logarithms: bool = False) -> None:
    """Fail the running check unless flash_attn_func is right, whatever computes it.

    Args:
        case: Shapes and options.
        logarithms: Whether these are asked for and compared too.
    """
    import torch

    call = by_flash_attn if logarithms else _output
    for dtype in (torch.float16, torch.float32):
        problem = difference(call, case, device="cuda", dtype=dtype)
        require(not problem, f"{case.label} in {dtype}: {problem}")


class _RequireFused:
    """Fails the running check unless a kernel of the plugin answers, and rightly."""

    def __call__(self, case: Case, *, mask: Any = None, backward: bool = False) -> None:
        """Run one case in half precision, or in float32 where the kernel takes only that.

        Args:
            case: Shapes and options.
            mask: Boolean mask, true keeps.
            backward: Whether gradients are compared too.
        """
        import torch

        others = {}
        for dtype in (torch.float16, torch.float32):
            before = _answers()
            problem = self._problem(case, mask, dtype, backward=backward)
            require(not problem, f"{case.label} in {dtype}: {problem}")
            others = _since(before)
            if not others.keys() & OTHERS:
                return
        require(False, f"{case.label}: answered by {', '.join(others)}, not by a kernel")

    @staticmethod
    def _problem(case: Case, mask: Any, dtype: Any, *, backward: bool) -> str:
        if mask is None:
            return difference(_output, case, device="cuda", dtype=dtype, backward=backward)
        from cuda_morph.ecosystem.attention import Options, attend

        exact = [tensor.to(dtype).double() for tensor in case.tensors()]
        given = [tensor.to("cuda", dtype) for tensor in case.tensors()]
        options = Options(scale=case.dim**-0.5, causal=case.causal, mask=mask.cuda())
        out, _ = attend(given[0], given[1], given[2], options)
        wanted, _ = reference(case, exact[0], exact[1], exact[2], mask=mask)
        require_same(out, wanted, "the output with a mask", dtype)
        return ""

    @staticmethod
    def entry(run: Callable[[], Any], entry: str, *, unasked: bool = False) -> Any:
        """Run a call that must be answered by one entry of a kernel.

        Args:
            run: The call.
            entry: ``varlen`` or ``kvcache``; empty: any.
            unasked: Whether the call may as well ask for no attention at all.

        Returns:
            What the call returned.
        """
        before = _answers()
        result = run()
        answers = _since(before)
        kernels = [name for name in answers if name not in OTHERS and name.endswith(entry)]
        require(
            kernels or (unasked and not answers),
            f"answered by {', '.join(answers) or 'nothing'}, not by a kernel's {entry}",
        )
        return result


require_fused = _RequireFused()


def _answers() -> dict[str, int]:
    from cuda_morph.ecosystem.attention import answered

    return answered()


def _since(before: dict[str, int]) -> dict[str, int]:
    return {
        name: count - before.get(name, 0)
        for name, count in _answers().items()
        if count != before.get(name, 0)
    }
