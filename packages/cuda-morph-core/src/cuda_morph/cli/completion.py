"""What the tab key offers beside commands, options and choices: names that are known here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem
from click.types import StringParamType

if TYPE_CHECKING:
    from collections.abc import Iterable

    import click

_BACKENDS = frozenset({"backend", "plugin"})
_TOPICS = frozenset({"topics"})


class KnownName(StringParamType):
    """A name that is offered; others are taken, too, and judged by the command."""

    def names(self) -> Iterable[str]:
        """Returns what is offered. It is asked only when the tab key is pressed."""
        raise NotImplementedError

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Returns the names that begin so."""
        return [CompletionItem(name) for name in self.names() if name.startswith(incomplete)]


class BackendName(KnownName):
    """The name of an installed plugin. None is imported."""

    def names(self) -> Iterable[str]:
        """Returns the plugins' names."""
        from cuda_morph.plugins import plugin_names

        return plugin_names()


class Topic(KnownName):
    """Something that ``cuda-morph explain`` knows."""

    def names(self) -> Iterable[str]:
        """Returns the topics."""
        from cuda_morph.explanation import topics

        return topics()


def offer_names(command: click.Command) -> None:
    """Lets a command's parameters be completed.

    Args:
        command: One whose options for backends and topics have the usual names.
    """
    for parameter in command.params:
        if parameter.name in _BACKENDS and not parameter.multiple:
            parameter.type = BackendName()
        elif parameter.name in _TOPICS:
            parameter.type = Topic()
