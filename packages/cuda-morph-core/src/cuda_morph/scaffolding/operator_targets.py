"""Where templates of operators come from: core's own, and those of installed plugins.

A plugin brings templates as data: a folder ``operator_templates/TARGET`` in its package, with one
folder per kind of operator and a ``target.json``. Nothing of the plugin is imported to find them.
"""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path

from cuda_morph.errors import PluginError, SettingError
from cuda_morph.frozen_record import frozen_record
from cuda_morph.plugin_listing import list_candidates
from cuda_morph.scaffolding.project_files import TEMPLATES

GENERIC = "generic"
FOLDER = "operator_templates"
_DESCRIPTION = "target.json"


@frozen_record
class Target:
    """A language, or library, in which operators can be written."""

    name: str
    folder: Path
    alignment: int
    """Bytes of which the last dimension must be a multiple."""
    types: dict[str, str]
    """Dtype to the language's own word, for the dtypes that the templates can take."""
    source: str
    """Where alignment and types are published."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of operators for which there are templates."""
        return tuple(sorted(path.name for path in self.folder.iterdir() if path.is_dir()))


def find_target(name: str) -> Target:
    """Finds the templates of a target.

    Args:
        name: ``generic``, or what an installed plugin brings.

    Returns:
        The target.

    Raises:
        SettingError: No installed plugin has it.
        PluginError: Its description cannot be used.
    """
    found = targets()
    if name not in found:
        raise SettingError(
            f"There is no target {name!r}.",
            hint=f"Installed: {', '.join(sorted(found))}. Others come with a vendor's plugin.",
        )
    return _read(name, found[name])


def targets() -> dict[str, Path]:
    """Lists the targets that are installed.

    Returns:
        Their folders by name; core's own comes first and cannot be replaced.
    """
    found = {GENERIC: TEMPLATES / "operator" / GENERIC}
    for candidate in list_candidates():
        for folder in _package_folders(re.split("[.:]", candidate.entry_point.value)[0]):
            for description in sorted((folder / FOLDER).glob(f"*/{_DESCRIPTION}")):
                found.setdefault(description.parent.name, description.parent)
    return found


def _package_folders(package: str) -> list[Path]:
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return []
    places = None if spec is None else spec.submodule_search_locations
    return [Path(place) for place in places or ()]


def _read(name: str, folder: Path) -> Target:
    path = folder / _DESCRIPTION
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        types = {str(dtype): str(word) for dtype, word in content["types"].items()}
        alignment, source = int(content["alignment"]), str(content["source"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise PluginError(
            f"The target {name!r} cannot be used: {error!r}.", hint=f"Its description is {path}."
        ) from error
    return Target(name=name, folder=folder, alignment=alignment, types=types, source=source)
