"""Reads a source tree into modules with every import they hold, wherever it stands."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Module:
    """A Python file with its dotted name, its text and its syntax tree."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"


@dataclass(frozen=True)
class Import:
    """One imported name as written: ``from a.b import c`` is ``a.b.c``."""

    target: str
    line: int


def read_tree(root: Path) -> tuple[Module, ...]:
    """Every Python file below ``root``; module names start with the name of ``root``."""
    modules = []
    for path in sorted(root.rglob("*.py")):
        parts = (root.name, *path.relative_to(root).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        modules.append(Module(name, path, text, ast.parse(text, str(path))))
    return tuple(modules)


def imports_of(module: Module) -> Iterator[Import]:
    """Absolute imports of a module, those inside functions and ``importlib.import_module`` included."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(module, node)
            yield from (Import(f"{base}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and _is_import_call(node):
            argument = node.args[0]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield Import(argument.value, node.lineno)


def graph_of(modules: tuple[Module, ...]) -> dict[str, set[str]]:
    """For each module of the tree the modules of the tree that it imports."""
    known = {module.name for module in modules}
    graph: dict[str, set[str]] = {}
    for module in modules:
        found = {resolve(imported.target, known) for imported in imports_of(module)}
        graph[module.name] = {name for name in found if name is not None and name != module.name}
    return graph


def resolve(target: str, known: set[str]) -> str | None:
    """The module that an import of ``target`` reads: itself, or the module that holds the name."""
    if target in known:
        return target
    holder = target.rpartition(".")[0]
    return holder if holder in known else None


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    keep = len(parts) - node.level + (1 if module.is_package else 0)
    return ".".join([*parts[:keep], *([node.module] if node.module else [])])


def _is_import_call(node: ast.Call) -> bool:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in ("import_module", "__import__") and bool(node.args)
