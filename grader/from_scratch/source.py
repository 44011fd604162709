"""Forbidden operators in the source, whether or not they ever run.

The source is searched from what a part runs: its contract's class and the module's own statements, then
every function and class that these name, in the part or in helper files. What only the block under
``if __name__ == "__main__"`` reaches may use anything. A name counts only if it comes from torch: a
student's own function may be called `scaled_dot_product_attention`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from grader.from_scratch.operators import FORBIDDEN_MODULES, FORBIDDEN_NAMES
from grader.loader import PACKAGE, SubmissionModules
from grader.terms import Use


@dataclass
class _Scope:
    """What one function, class or module body names and uses.

    Attributes:
        attributes: names that stand behind a dot.
        methods: of a class, those that nobody calls by just having an instance: they count where their
            name stands behind a dot.
    """

    names: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    methods: dict[str, _Scope] = field(default_factory=dict)
    uses: list[tuple[int, str]] = field(default_factory=list)
    imports: dict[str, str] = field(default_factory=dict)


@dataclass
class _Source:
    """One file: its definitions by name, and its module-level statements but the `__main__` block."""

    path: str
    scopes: dict[str, _Scope] = field(default_factory=dict)
    body: _Scope = field(default_factory=_Scope)
    stars: list[str] = field(default_factory=list)

    def origin(self, scope: _Scope, name: str) -> str | None:
        """The dotted name that an imported name stands for, or None."""
        return scope.imports.get(name) or self.body.imports.get(name)


def uses_in_source(modules: SubmissionModules, class_names: Mapping[str, str]) -> list[Use]:
    """Return every forbidden use that the code of a part reaches, charged to that part.

    Args:
        modules: the submission; nothing of it is run.
        class_names: the contract's class of each part. Reaching another part's class ends there, for
            that part answers for itself; anything else that a part borrows is its own.
    """
    reader = _Reader(modules)
    found: dict[Use, None] = {}
    for part, path in modules.parts.items():
        for file, line, operator in reader.reach(path, part, class_names):
            found.setdefault(Use(part, file, line, operator))
    return sorted(found)


class _Reader:
    def __init__(self, modules: SubmissionModules) -> None:
        self._modules = modules
        self._sources: dict[str, _Source | None] = {}

    def reach(self, path: str, part: str, class_names: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
        others = {
            (self._modules.parts[other], name)
            for other, name in class_names.items()
            if other != part and other in self._modules.parts
        }
        waiting: list[tuple[str, str | None]] = [(path, None), (path, class_names[part])]
        seen: set[tuple[str, str | None]] = set()
        attributes: set[str] = set()
        dormant: list[tuple[_Source, str, _Scope]] = []
        while waiting:
            node = waiting.pop()
            if node in seen or node in others:
                continue
            seen.add(node)
            source = self._source(node[0])
            if source is None:
                continue
            scope = source.body if node[1] is None else source.scopes.get(node[1])
            awake = [] if scope is None else [(source, scope)]
            while awake:
                source, scope = awake.pop()
                for line, operator in scope.uses:
                    yield source.path, line, operator
                waiting += self._named_by(source, scope)
                attributes |= scope.attributes
                dormant += [(source, name, method) for name, method in scope.methods.items()]
                awake += [(of, method) for of, name, method in dormant if name in attributes]
                dormant = [one for one in dormant if one[1] not in attributes]

    def _named_by(self, source: _Source, scope: _Scope) -> Iterator[tuple[str, str | None]]:
        part_paths = set(self._modules.parts.values())
        for name in scope.names:
            head, _, rest = name.partition(".")
            if head in source.scopes:
                yield source.path, head
            for target in self._targets(source, scope, head, rest):
                path, attribute = self._definition(target)
                if path is None:
                    continue
                yield path, attribute
                if path not in part_paths:
                    yield path, None  # a helper's own statements run when it is imported

    def _targets(self, source: _Source, scope: _Scope, head: str, rest: str) -> Iterator[str]:
        origin = source.origin(scope, head)
        if origin is not None:
            yield f"{origin}.{rest}".rstrip(".")
        for module in source.stars:
            yield f"{module}.{head}"

    def _definition(self, target: str) -> tuple[str | None, str | None]:
        """Split a dotted name into a file of the submission and a name in it."""
        names = target.split(".")
        for end in range(len(names), 0, -1):
            module = ".".join(names[:end])
            full = module if names[0] == PACKAGE else f"{PACKAGE}.{module}"
            path = self._modules.locate(full) if full != PACKAGE else None
            if path is not None and not path.endswith("/"):
                return path, names[end] if end < len(names) else None
        return None, None

    def _source(self, path: str) -> _Source | None:
        if path not in self._sources:
            try:
                tree = ast.parse(self._modules.files[path])
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                self._sources[path] = None  # the import says what is wrong with it
            else:
                try:
                    self._sources[path] = _read(path, tree)
                except RecursionError:
                    self._sources[path] = _read_flat(path, tree)
        return self._sources[path]


def _read(path: str, tree: ast.Module) -> _Source:
    source = _Source(path)
    statements = list(_imported_statements(tree.body))
    definitions = [node for node in statements if isinstance(node, _DEFINITION)]
    rest = [node for node in statements if not isinstance(node, _DEFINITION)]
    # Every name is noted before any body is read: own definitions hide torch's, wherever they stand.
    source.scopes = {node.name: _Scope() for node in definitions}
    for statement in rest:
        _note_imports(source, source.body, statement)
    for definition in definitions:
        _note_imports(source, source.scopes[definition.name], definition)

    for statement in rest:
        _ScopeReader(source, source.body).visit(statement)
    for definition in definitions:
        scope = source.scopes[definition.name]
        if isinstance(definition, ast.ClassDef):
            _read_class(source, scope, definition)
        else:
            _ScopeReader(source, scope).visit(definition)
    return source


def _read_flat(path: str, tree: ast.Module) -> _Source:
    """Read what is nested too deep to be followed: every forbidden name that stands anywhere counts."""
    source = _Source(path)
    for node in ast.walk(tree):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if name in FORBIDDEN_NAMES:
            source.body.uses.append((node.lineno, f"torch {name}"))  # type: ignore[attr-defined]
    return source


def _read_class(source: _Source, scope: _Scope, definition: ast.ClassDef) -> None:
    reader = _ScopeReader(source, scope)
    for node in [*definition.decorator_list, *definition.bases, *definition.keywords, *definition.body]:
        if isinstance(node, _FUNCTION) and not _runs_by_itself(node.name):
            method = scope.methods.setdefault(node.name, _Scope(imports=scope.imports))
            _ScopeReader(source, method).visit(node)
        else:
            reader.visit(node)


def _runs_by_itself(method: str) -> bool:
    return method == "forward" or (method.startswith("__") and method.endswith("__"))


_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITION = (*_FUNCTION, ast.ClassDef)


def _imported_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when the file is imported: all but what is under a `__main__` guard."""
    for node in body:
        if isinstance(node, ast.If) and _asks_for_main(node.test):
            yield from _imported_statements(node.orelse)
        else:
            yield node


def _asks_for_main(test: ast.expr) -> bool:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(map(_asks_for_main, test.values))
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = [test.left, *test.comparators]
    return any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides) and any(
        isinstance(side, ast.Constant) and side.value == "__main__" for side in sides
    )


def _note_imports(source: _Source, scope: _Scope, statement: ast.stmt) -> None:
    for node in ast.walk(statement):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                scope.imports[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                module = f"{PACKAGE}.{module}".rstrip(".")
            for alias in node.names:
                if alias.name == "*":
                    source.stars.append(module)
                else:
                    scope.imports[alias.asname or alias.name] = f"{module}.{alias.name}"


class _ScopeReader(ast.NodeVisitor):
    """Collects the dotted names that a piece of code evaluates; annotations are not evaluated."""

    def __init__(self, source: _Source, scope: _Scope) -> None:
        self._source = source
        self._scope = scope

    def visit_Name(self, node: ast.Name) -> None:
        self._note(node.id, node.lineno)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        dotted = _dotted(node)
        if dotted is None:
            self._scope.attributes.add(node.attr)
            self.generic_visit(node)
        else:
            self._note(dotted, node.lineno)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
            asked = node.args[1:]
            named = [*asked, *(one for each in asked if isinstance(each, ast.Tuple) for one in each.elts)]
            plain = all(isinstance(one, ast.Tuple) or _dotted(one) for one in named)
            self._visit_all(node.args[:1] if plain else node.args)  # to ask for a class is not to use it
            return
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) > 1:
            owner, name = _dotted(node.args[0]), node.args[1]
            if owner and isinstance(name, ast.Constant) and isinstance(name.value, str):
                self._note(f"{owner}.{name.value}", node.lineno)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.target)
        if node.value is not None:
            self.visit(node.value)

    def visit_arg(self, node: ast.arg) -> None:
        pass

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._visit_all([*node.decorator_list, node.args, *node.body])

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - ast's name

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    def _note(self, dotted: str, line: int) -> None:
        self._scope.names.add(dotted)
        self._scope.attributes |= {*dotted.split(".")[1:]}
        operator = _forbidden(self._source, self._scope, dotted)
        if operator is not None:
            self._scope.uses.append((line, operator))


def _dotted(node: ast.AST) -> str | None:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(names)])


def _forbidden(source: _Source, scope: _Scope, dotted: str) -> str | None:
    """Return the operator of torch that a dotted name means, if it is a forbidden one."""
    head, _, rest = dotted.partition(".")
    if head in source.scopes:
        return None
    origin = source.origin(scope, head)
    if origin is not None:
        full = f"{origin}.{rest}".rstrip(".")
    elif head in FORBIDDEN_NAMES and any(module.startswith("torch") for module in source.stars):
        full = f"torch.{dotted}"
    else:
        return None
    names = full.split(".")
    if names[0] != "torch":
        return None
    for position, name in enumerate(names[1:], start=1):
        module = ".".join(names[:position])
        if name in FORBIDDEN_NAMES or (module in FORBIDDEN_MODULES and name):
            return ".".join(names[: position + 1])
    return None
