"""Findings on versions: PyTorch, tested libraries, and the compiled tier."""

from __future__ import annotations

import json
from importlib import metadata, resources
from typing import TYPE_CHECKING

from cuda_morph.diagnosis.finding import Finding, Level
from cuda_morph.frozen_record import frozen_record
from cuda_morph.information import native_state
from cuda_morph.torch_build import torch_build
from cuda_morph.torch_facts import TESTED_TORCH, is_tested, torch_version

if TYPE_CHECKING:
    from collections.abc import Iterator


@frozen_record
class KnownGood:
    """Versions of a library with which this repository's tests ran."""

    distribution: str
    versions: str
    source: str


def known_good() -> tuple[KnownGood, ...]:
    """Reads the table of libraries that were tested."""
    file = resources.files("cuda_morph.diagnosis") / "known_good.json"
    return tuple(KnownGood(**row) for row in json.loads(file.read_text(encoding="utf-8")))


def look() -> Iterator[Finding]:
    """Looks at everything that is installed.

    Yields:
        One finding for PyTorch, the compiled tier, and each library of the table that is there.
    """
    yield _torch()
    yield _native()
    for row in known_good():
        try:
            version = metadata.version(row.distribution)
        except metadata.PackageNotFoundError:
            continue
        yield _judge(row, version)


def _judge(row: KnownGood, version: str) -> Finding:
    from packaging.specifiers import SpecifierSet
    from packaging.version import InvalidVersion, Version

    id_, name = f"library.{row.distribution}", row.distribution
    try:
        fits = SpecifierSet(row.versions).contains(Version(version), prereleases=True)
    except InvalidVersion:
        text = f"{name} {version!r} is no version number"
        return Finding(id=id_, level=Level.UNKNOWN, message=text, source=row.source)
    if fits:
        text = f"{name} {version} is among the tested versions"
        return Finding(id=id_, level=Level.OK, message=text, source=row.source)
    text = f"{name} {version} was not tested with cuda-morph; {row.versions} was"
    fix = f"If it misbehaves: pip install '{name}{row.versions}'."
    return Finding(id=id_, level=Level.WARN, message=text, fix=fix, source=row.source)


def _torch() -> Finding:
    version, build, tested = torch_version(), torch_build(), " and ".join(TESTED_TORCH)
    if build is not None and not _same(version, build.version):
        # What pip says is what plugins and requirements are compared with.
        said = f"the metadata of another, {version}" if version else "no metadata"
        text = f"PyTorch's files are those of {build.version}, with {said}"
        fix = "Install PyTorch again, in one piece: two installations are mixed, or part is gone."
        return Finding(id="torch", level=Level.WARN, message=text, fix=fix)
    if version is None:
        fix = "Install PyTorch, in the vendor's build where there is one."
        return Finding(id="torch", level=Level.FAIL, message="PyTorch is not installed", fix=fix)
    if is_tested(version):
        return Finding(id="torch", level=Level.OK, message=f"PyTorch {version} is a tested release")
    text = f"PyTorch {version} is not among the tested releases ({tested}); it is tried"
    return Finding(id="torch", level=Level.WARN, message=text, fix="Report what does not work.")


def _same(metadata_version: str | None, own: str) -> bool:
    """Compares without what stands behind a plus: some builds name it in one place only."""
    return (metadata_version or "").partition("+")[0] == own.partition("+")[0]


def _native() -> Finding:
    state = native_state()
    if state == "loaded":
        text = "cuda-morph-native, the compiled tier, loads"
        return Finding(id="native", level=Level.OK, message=text)
    fix = "pip install cuda-morph-native, with a C++ compiler for your interpreter."
    text = f"the compiled tier is not used, a slower one is: {state}"
    return Finding(id="native", level=Level.WARN, message=text, fix=fix)
