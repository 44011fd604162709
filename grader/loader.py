"""Import a submission's files, whatever the import style, as one set of modules.

`from starter.attention import ...`, `from .attention import ...` and `from attention import ...` all
give the same module object, called ``starter.attention``. Files come as bytes and are never looked up
on disk, so that a worker needs no access to where the submission lies.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import posixpath
import re
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

PACKAGE = "starter"
MAX_DEPTH = 3
"""How many folders down a part may lie: `hw3-main/hw3/starter/attention.py` is three."""

_REAL = frozenset(sys.stdlib_module_names) | {"torch", "numpy"}
"""Top-level names that a file in the submission never replaces."""

_HIDDEN = frozenset({"grader", "reference"})
"""Top-level names of the harness, which no submission may import from it."""

SKIPPED_FOLDERS = frozenset({"__MACOSX", "__pycache__", "site-packages", "node_modules", "venv"})
"""Names of folders that hold nobody's homework."""


def find_parts(paths: Sequence[str], files: Mapping[str, str]) -> dict[str, str]:
    """Choose the file of every part: the shallowest, then one in `starter/`, then the fullest folder.

    Where no file has a part's name, one counts that means the same: `attention-2.py`, `Attention (1).py`,
    `smithbob_LATE_340_208_attention.py`; of several the last upload.

    Args:
        paths: the submission's files, POSIX paths relative to its root.
        files: the file name that each part asks for, by part.

    Returns:
        the path chosen for each part that was found.
    """
    within = [path for path in paths if path.count("/") <= MAX_DEPTH and not _skipped(path)]
    meant = {path: meaning(path) for path in within}
    candidates: dict[str, list[str]] = {}
    for part, name in files.items():
        exact = [path for path in within if posixpath.basename(path) == name]
        candidates[part] = exact or [path for path in within if meant[path] == meaning(name)]

    found_in = [posixpath.dirname(path) for chosen in candidates.values() for path in chosen]

    def preference(path: str) -> tuple[int, bool, int, int, str]:
        folder = posixpath.dirname(path)
        not_starter = posixpath.basename(folder) != PACKAGE
        return (path.count("/"), not_starter, -found_in.count(folder), -_upload(path), path)

    return {part: min(paths, key=preference) for part, paths in candidates.items() if paths}


_BULK_PREFIX = re.compile(r"^.*_\d+_\d+_")
"""What Canvas puts before the name in a bulk download: student, marks, two numbers."""

_MAX_NAME = 150
"""A longer name means no other; in a zip it could have thousands of characters to be tried."""

_COPY = re.compile(r"(?:[ _-]*(?:\((\d+)\)|copy|final)|[ _-]+v?(\d+))+$")
"""What a browser, an LMS or a student puts behind a name that is there already."""


def meaning(path: str) -> str:
    """The name that a file's name means: small letters only, without what was put around it."""
    stem = posixpath.basename(path).lower()
    if not stem.endswith(".py") or len(stem) > _MAX_NAME:
        return ""
    stem = _COPY.sub("", _BULK_PREFIX.sub("", stem.removesuffix(".py")).strip())
    return re.sub(r"[^a-z0-9]", "", stem)


def _upload(path: str) -> int:
    """Which of several uploads of a name it is."""
    copy = _COPY.search(posixpath.basename(path).lower().removesuffix(".py").strip())
    return max(map(int, re.findall(r"\d+", copy.group())), default=0) if copy else 0


def _skipped(path: str) -> bool:
    folders = path.split("/")[:-1]
    return any(folder.startswith(".") or folder in SKIPPED_FOLDERS for folder in folders)


class SubmissionModules:
    """The modules of one submission. Only inside `installed()` can they be imported.

    Args:
        files: the Python files' bytes, by POSIX path relative to the submission's root.
        parts: the path of each part's file, as `find_parts` gives it.
        display_root: what stands before a path in tracebacks; a real folder, with a trailing slash,
            lets a debugger find the source.
    """

    def __init__(self, files: Mapping[str, bytes], parts: Mapping[str, str], display_root: str = "") -> None:
        self.files = files
        self.parts = parts
        self.display_root = display_root
        self._by_module = {f"{PACKAGE}.{part}": path for part, path in parts.items()}
        self._roots = self._search_roots()
        self._names = self._own_names()
        self._modules: dict[str, types.ModuleType] = {}
        self._covered: dict[str, types.ModuleType] = {}

    def import_part(self, part: str) -> types.ModuleType:
        """Return the part's module, importing it if need be; must run inside `installed()`."""
        return importlib.import_module(f"{PACKAGE}.{part}")

    def run_apart(self, part: str) -> types.ModuleType:
        """Run a part's file in a module that is not the one under its name; inside `installed()`."""
        loader = _SourceLoader(self, self.parts[part])
        module = types.ModuleType(f"{PACKAGE}.{part}")
        module.__file__ = self.display(self.parts[part])
        module.__package__ = PACKAGE
        exec(loader.get_code(module.__name__), module.__dict__)  # noqa: S102 - this is what an import is
        return module

    def imported(self) -> list[types.ModuleType]:
        """The modules that have been imported so far, each once."""
        return list({id(module): module for module in self._modules.values()}.values())

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Make the submission importable, and leave no trace of it in `sys` afterwards."""
        finder = _Finder(self)
        for name in self._names:
            if name in sys.modules:
                self._covered[name] = sys.modules.pop(name)
        for name, module in self._modules.items():
            self._put(name, module)
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            sys.meta_path.remove(finder)
            for name in {*self._modules, PACKAGE}:
                sys.modules.pop(name, None)
            sys.modules.update(self._covered)
            self._covered.clear()

    def _put(self, name: str, module: types.ModuleType) -> None:
        covered = sys.modules.get(name)
        if covered is not None and covered is not module:
            self._covered[name] = covered
        self._modules[name] = sys.modules[name] = module

    def display(self, path: str) -> str:
        """How a file of the submission is called in tracebacks."""
        return self.display_root + path

    def path_of(self, shown: str) -> str | None:
        """The submission's file behind a name in a traceback, or None."""
        path = shown.removeprefix(self.display_root)
        return path if path in self.files else None

    def locate(self, name: str) -> str | None:
        """The file of the module `starter.…`; a folder of modules without `__init__.py` ends in /."""
        if name in self._by_module:
            return self._by_module[name]
        relative = name.split(".")[1:]
        for root in self._roots:
            stem = posixpath.join(root, *relative)
            for path in (f"{stem}.py", f"{stem}/__init__.py"):
                if path in self.files:
                    return path
            if any(path.startswith(f"{stem}/") for path in self.files):
                return f"{stem}/"
        return None

    def register(self, name: str, module: types.ModuleType) -> None:
        """Make one module known under its full name and, where that is free, its short one."""
        self._put(name, module)
        short = name.removeprefix(f"{PACKAGE}.")
        if short != name and short.split(".")[0] not in _REAL:
            self._put(short, module)

    def forget(self, name: str) -> None:
        """Undo `register`, after an import that failed."""
        for known in (name, name.removeprefix(f"{PACKAGE}.")):
            self._modules.pop(known, None)
            sys.modules.pop(known, None)

    def _own_names(self) -> set[str]:
        """Names that mean this submission's modules while it is installed, whoever had them before."""
        names = {PACKAGE, *self._by_module, *self.parts}
        for path in self.files:
            for root in self._roots:
                relative = posixpath.relpath(path, root or ".").removesuffix(".py")
                if not relative.startswith(".."):
                    dotted = relative.removesuffix("/__init__").replace("/", ".")
                    names.add(f"{PACKAGE}.{dotted}")
                    if dotted.partition(".")[0] not in _REAL:
                        names |= {dotted, dotted.partition(".")[0]}
        return names

    def _search_roots(self) -> list[str]:
        """Folders in which helpers are looked for: the parts' own, then those above them."""
        own = dict.fromkeys(posixpath.dirname(path) for path in self.parts.values())
        roots = dict.fromkeys(own)
        for folder in own:
            while folder:
                folder = posixpath.dirname(folder)
                roots.setdefault(folder)
                roots.setdefault(posixpath.join(folder, PACKAGE))
        return list(roots)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the submission's modules before anything else does, except what is real."""

    def __init__(self, submission: SubmissionModules) -> None:
        self._submission = submission

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        top = fullname.partition(".")[0]
        if fullname == PACKAGE:
            return _spec(fullname, _PackageLoader(self._submission), is_package=True)
        full = fullname if top == PACKAGE else f"{PACKAGE}.{fullname}"
        location = None if top in _REAL else self._submission.locate(full)
        if location is None:
            if top in _HIDDEN or top == PACKAGE:
                raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
            return None
        if full != fullname:
            return _spec(fullname, _AliasLoader(full), is_package=False)
        loader = _SourceLoader(self._submission, location)
        return _spec(fullname, loader, is_package=loader.is_package(fullname))


def _spec(name: str, loader: importlib.abc.Loader, *, is_package: bool) -> importlib.machinery.ModuleSpec:
    return importlib.machinery.ModuleSpec(name, loader, is_package=is_package)


class _PackageLoader(importlib.abc.Loader):
    """The package that all parts live in; a submission need not have an `__init__.py`."""

    def __init__(self, submission: SubmissionModules) -> None:
        self._submission = submission

    def exec_module(self, module: types.ModuleType) -> None:
        self._submission.register(PACKAGE, module)


class _AliasLoader(importlib.abc.Loader):
    """Hands out the module that the short name stands for."""

    def __init__(self, full_name: str) -> None:
        self._full_name = full_name
        self._own_spec: importlib.machinery.ModuleSpec | None = None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = importlib.import_module(self._full_name)
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        # The import system has just written the alias' spec over the module's own.
        module.__spec__ = self._own_spec


class _SourceLoader(importlib.abc.InspectLoader):
    """Runs one file of the submission."""

    def __init__(self, submission: SubmissionModules, path: str) -> None:
        self._submission = submission
        self._path = path

    def is_package(self, fullname: str) -> bool:
        return self._path.endswith(("/", "/__init__.py"))

    def get_source(self, fullname: str) -> str:
        return importlib.util.decode_source(self._data())

    def get_code(self, fullname: str) -> types.CodeType:
        # From bytes, so that a byte order mark, a coding line and any line ends are Python's affair.
        shown = self._submission.display(self._path)
        code = compile(self._data(), shown, "exec", dont_inherit=True)
        assert isinstance(code, types.CodeType)  # noqa: S101 - for the type checker
        return code

    def exec_module(self, module: types.ModuleType) -> None:
        name = module.__name__
        module.__file__ = self._submission.display(self._path)
        self._submission.register(name, module)
        try:
            code = self.get_code(name)
            lines = self.get_source(name).splitlines(keepends=True)
            linecache.cache[module.__file__] = (len(lines), None, lines, module.__file__)
            exec(code, module.__dict__)  # noqa: S102 - this is what an import is
        except BaseException:
            self._submission.forget(name)
            raise

    def _data(self) -> bytes:
        return b"" if self._path.endswith("/") else self._submission.files[self._path]
