"""Packages to which a file is added and nothing else: whatever is in the folder counts."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType


def modules_of(package: ModuleType) -> list[ModuleType]:
    """Import the modules of a package, in the order of their names."""
    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]
