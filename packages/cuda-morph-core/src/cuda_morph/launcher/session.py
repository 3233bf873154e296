"""One ``cuda-morph run``: when it activates, what it says, and how it ends."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cuda_morph import environment, inheritance
from cuda_morph.errors import ActivationError, MorphError, SettingError
from cuda_morph.import_watch import after_import
from cuda_morph.launcher import closing, execution, program
from cuda_morph.launcher.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Container, Sequence
    from pathlib import Path

    from cuda_morph.launcher.report import Target
    from cuda_morph.launcher.trace_file import TraceFile
    from cuda_morph.manifest import Activation

DEFAULT_VIEW = "cuda"
"""View of a run: a program that is to run unchanged expects a CUDA machine."""

FAILED = 2
"""Exit code of a run whose program could not be started or whose activation failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of ``cuda-morph run``; ``None`` leaves the choice to the environment."""

    backend: str | None = None
    view: str | None = None
    fallback: str | None = None
    tier: str | None = None
    report: Path | None = None
    trace: Path | None = None
    quiet: bool = False


class Session:
    """A run, from checked options to the closing table.

    Everything that can be wrong before the program starts is raised here, while nothing has been
    changed yet.

    Args:
        options: What the user asked for.
        requested: The program to run.

    Raises:
        MorphError: An option, a variable or the program cannot be used.
    """

    def __init__(self, options: Options, requested: program.Program) -> None:
        named = options.backend
        self.backend = environment.read(environment.BACKEND) if named is None else named
        self.view = options.view or environment.read(environment.VIEW) or DEFAULT_VIEW
        self.fallback = options.fallback or environment.read(environment.FALLBACK) or "cpu"
        self.tier = options.tier or environment.read(environment.TIER)
        self.quiet = options.quiet
        self.activation: Activation | None = None
        self.failure: BaseException | None = None
        self.exit_code = 0
        self._attempted = False
        self._official = False
        self._process = os.getpid()
        _check_backend(self.backend)
        self._report = _report_target(options.report)
        self._trace = _trace_file(options.trace)
        self._prepared = program.prepare(requested)
        self._started = time.monotonic()

    def run(self, path: Sequence[str], modules: Container[str]) -> None:
        """Runs the program; what ends it leaves as the interpreter's own exception.

        Args:
            path: ``sys.path`` as Python had made it for the command line.
            modules: Names of the modules that were loaded before the command line.

        Raises:
            SystemExit: The activation failed and the program went on without torch.
        """
        self._arm()
        execution.enter(self._prepared, path, modules)
        if "torch" in sys.modules:  # imported by the environment, such as sitecustomize
            self._official = os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "1"
            self._activate_once()
        try:
            execution.run(self._prepared)
        except BaseException as error:
            self.exit_code = execution.exit_code(error)
            if self.failure is None:
                raise
        if self.failure is not None:
            raise SystemExit(FAILED)

    def _arm(self) -> None:
        """Arranges the activation of this process and of its children, at ``import torch``."""
        if self.tier:
            os.environ[environment.TIER.name] = self.tier
        os.environ[environment.INHERIT.name] = inheritance.encode(
            backend=self.backend, view=self.view, fallback=self.fallback, tier=self.tier
        )
        inheritance.take_ownership(self)
        if "torch" not in sys.modules:
            # PyTorch calls core's entry point at the end of its import, and this does nothing; but
            # not from source without metadata, and not with TORCH_DEVICE_BACKEND_AUTOLOAD=0.
            after_import("torch", self._activate_once)
        atexit.register(self._finish)
        self._started = time.monotonic()

    def torch_imported(self) -> None:
        """Activates; called by PyTorch through core's entry point."""
        self._official = True
        inheritance.let_torch_finish()
        self._activate_once()

    def _activate_once(self) -> None:
        if self._attempted or os.getpid() != self._process:
            return
        self._attempted = True
        from cuda_morph.activation import activate

        try:
            self.activation = activate(
                self.backend, view=self.view, fallback=self.fallback, trace=self._recording
            )
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a vendor's library raises
            self._stop(error)
        else:
            self._announce(self.activation)

    @property
    def _wants_closing(self) -> bool:
        return self._report is not None or self._trace is not None or self._shows_table

    @property
    def _recording(self) -> bool | Literal["counts"]:
        """What to ask of the activation: nothing where nobody will see it."""
        if self._trace is not None:
            return True
        return "counts" if self._wants_closing else False

    @property
    def _shows_table(self) -> bool:
        if self.quiet:
            return False
        asked = self._report is not None or self._trace is not None
        return asked or closing.is_terminal(sys.stderr)

    def _announce(self, activation: Activation) -> None:
        if activation.backend.simulated and activation.requested != activation.backend.name:
            # Also in a quiet run: under the vendor's names it could be taken for a real one.
            closing.say(closing.simulation_banner(activation))
        if self.quiet:
            return
        closing.say(activation.summary())
        if not self._official:
            closing.say(
                "cuda-morph: child processes are not redirected: PyTorch did not call "
                "cuda-morph's torch.backends entry point."
            )

    def _stop(self, error: BaseException) -> None:
        """Ends the program: it must not go on as if CUDA were there."""
        logging.getLogger("cuda_morph").debug("activation failed", exc_info=error)
        if not isinstance(error, MorphError):
            error = ActivationError(f"Activation failed: {type(error).__name__}: {error}")
        self.failure, self.exit_code = error, FAILED
        closing.say(f"cuda-morph: {error}")
        if threading.current_thread() is threading.main_thread():
            raise SystemExit(FAILED)
        # Raised in another thread, SystemExit would end that thread only.
        self._finish()
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(FAILED)

    def _finish(self) -> None:
        """Writes the report and the table; runs after the program's own ``atexit`` functions."""
        if os.getpid() != self._process or not self._wants_closing:
            return  # also for a forked child that leaves through the interpreter's exit
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        outcome = Outcome(
            program=self._prepared.program,
            exit_code=self.exit_code,
            seconds=time.monotonic() - self._started,
            activation=self.activation,
            error=self.failure,
            trace=self.activation.trace() if self.activation and self._trace else None,
            children_inherit=self._official if self._attempted else None,
        )
        if self._report is not None:
            from cuda_morph.launcher import report

            self._report.write(report.as_text(outcome))
        if self._trace is not None:
            self._trace.write(outcome)
        if self._shows_table:
            closing.show(outcome)


def _report_target(path: Path | None) -> Target | None:
    if path is None:
        return None
    from cuda_morph.launcher.report import Target

    return Target(path)


def _trace_file(path: Path | None) -> TraceFile | None:
    if path is None:
        return None
    from cuda_morph.launcher.trace_file import TraceFile

    return TraceFile(path)


def _check_backend(backend: str | None) -> None:
    """Refuses a backend that is not installed or is broken, without asking for its device."""
    if backend is None:
        return
    if not backend.strip():
        raise SettingError("--backend needs a name.", hint="cuda-morph plugins lists them.")
    from cuda_morph.selection import check_request

    check_request(backend)
