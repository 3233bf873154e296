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


class BackendName(StringParamType):
    """The name of an installed plugin; others are taken, too, and judged by the command."""

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Returns the plugins whose names begin so. None is imported."""
        from cuda_morph.plugins import plugin_names

        return _beginning(plugin_names(), incomplete)


class Topic(StringParamType):
    """Something that ``cuda-morph explain`` knows."""

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Returns the topics that begin so."""
        from cuda_morph.explanation import topics

        return _beginning(topics(), incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


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
