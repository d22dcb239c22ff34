"""The laws of the layout as functions from a source tree to the sentences it breaks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.modules import Module, graph_of, imports_of, resolve

FOUNDATION = ("errors", "files", "qtypes", "numerics", "target")
TOOLS = ("report", "ops", "opsets", "passes")
ROOMS = ("import_", "quantize", "partition", "compile", "context")

# Where a third-party package may be imported: prefixes of module names without the root package.
PACKAGE_HOMES: dict[str, tuple[str, ...]] = {
    "mlir": ("compile",),
    "llvmlite": ("compile",),
    "ziglang": ("compile",),
    "onnxruntime": ("quantize", "context", "app"),
    "onnxscript": ("import_", "quantize", "partition"),
    "onnx_ir": ("opsets", "passes", "import_", "quantize", "partition", "driver", "app"),
    "onnx": ("import_", "quantize", "partition", "context", "driver", "app"),
    "typer": ("cli",),
    "jinja2": ("app",),
    "matplotlib": ("app",),
    "torch": (),
    "sklearn": (),
    "tosa": (),
    "tosa_tools": (),
}

MOST_FILE_LINES = 500
MOST_FUNCTION_LINES = 60
MOST_FOLDER_FILES = 12
BANNED_NAMES = ("utils", "util", "helpers", "helper", "common", "misc")
UNFINISHED = ("TODO", "FIXME", "XXX", "raise NotImplementedError")
UNMENDABLE = ("", "BaseException", "HexqdqError")
ROUNDING_CALLS = ("round", "rint", "around", "round_", "clip", "right_shift", "fix")
ROUNDING_HOMES = ("numerics", "compile")


def import_law(modules: tuple[Module, ...]) -> Iterator[str]:
    """Imports against the direction of the layers."""
    root = modules[0].name.split(".")[0]
    known = {module.name for module in modules}
    for module in modules:
        for imported in imports_of(module):
            target = resolve(imported.target, known)
            if target is None and imported.target.split(".")[0] != root:
                continue
            if target is None:
                yield f"{module.name}:{imported.line} imports {imported.target}, which does not exist"
            elif not _allowed(_inner(module.name), _inner(target)):
                yield f"{module.name}:{imported.line} imports {target} against the import law"


def package_law(modules: tuple[Module, ...]) -> Iterator[str]:
    """Third-party packages outside their homes."""
    for module in modules:
        for imported in imports_of(module):
            package = imported.target.split(".")[0]
            homes = PACKAGE_HOMES.get(package)
            if homes is not None and not _inside(_inner(module.name), homes):
                where = " or ".join(homes) or "nothing in the package"
                yield f"{module.name}:{imported.line} imports {package}; only {where} may"


def cycles(modules: tuple[Module, ...]) -> Iterator[str]:
    """Modules that reach themselves through imports."""
    graph = graph_of(modules)
    for start in sorted(graph):
        seen: set[str] = set()
        waiting = list(graph[start])
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting.extend(graph[name])
        if start in seen:
            yield f"{start} imports itself through {', '.join(sorted(n for n in seen if start in graph[n]))}"


def sizes(modules: tuple[Module, ...]) -> Iterator[str]:
    """Files, functions and folders that are too large."""
    folders: dict[str, int] = {}
    for module in modules:
        lines = len(module.text.splitlines())
        if lines > MOST_FILE_LINES:
            yield f"{module.name} has {lines} lines, more than {MOST_FILE_LINES}"
        if not module.is_package:
            folder = str(module.path.parent)
            folders[folder] = folders.get(folder, 0) + 1
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > MOST_FUNCTION_LINES:
                    yield f"{module.name}.{node.name} has {length} lines, more than {MOST_FUNCTION_LINES}"
    for folder, count in folders.items():
        if count > MOST_FOLDER_FILES:
            yield f"{folder} has {count} files, more than {MOST_FOLDER_FILES}"


def names(modules: tuple[Module, ...]) -> Iterator[str]:
    """Modules and folders whose name says nothing."""
    for module in modules:
        for part in module.name.split("."):
            if part in BANNED_NAMES:
                yield f"{module.name}: {part} is no name for a module"


def finished(modules: tuple[Module, ...]) -> Iterator[str]:
    """Marks of unfinished work."""
    for module in modules:
        for number, line in enumerate(module.text.splitlines(), 1):
            yield from (f"{module.name}:{number} holds {mark}" for mark in UNFINISHED if mark in line)


def catches(modules: tuple[Module, ...]) -> Iterator[str]:
    """Handlers, outside ``cli``, of more than can be mended.

    ``except Exception`` may stand where a third-party call is translated: it raises from what it caught.
    """
    for module in modules:
        if _inner(module.name) == "cli":
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ExceptHandler):
                translates = any(isinstance(part, ast.Raise) and part.cause for part in ast.walk(node))
                for caught in _caught(node):
                    if caught in UNMENDABLE or (caught == "Exception" and not translates):
                        yield f"{module.name}:{node.lineno} catches {caught or 'everything'}; only cli may"


def rounding(modules: tuple[Module, ...]) -> Iterator[str]:
    """Rounding, shifting down and clipping outside ``numerics`` and the code generator."""
    for module in modules:
        if _inside(_inner(module.name), ROUNDING_HOMES):
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.RShift):
                yield f"{module.name}:{node.lineno} shifts down; numerics does that"
            elif isinstance(node, ast.Call) and _called(node) in ROUNDING_CALLS:
                yield f"{module.name}:{node.lineno} calls {_called(node)}; numerics does that"


def _allowed(importer: str, target: str) -> bool:
    """Whether the module ``importer`` may import ``target``; both without the root package."""
    layer, other = importer.split(".")[0], target.split(".")[0]
    if target == "":
        return layer in ("", "app", "cli", "__main__")
    if layer == "__main__":
        return other == "cli"
    if layer == "":
        return other not in ("cli", "__main__")
    if layer in FOUNDATION:
        return other in FOUNDATION
    if layer in TOOLS:
        return other == layer or other in FOUNDATION
    if other in FOUNDATION + TOOLS or layer == other:
        return True
    if layer in ROOMS:
        position = ROOMS.index(layer)
        return position > 0 and _inside(target, (f"{ROOMS[position - 1]}.product",))
    order = ("driver", "app", "cli")
    below = ROOMS + order[: order.index(layer)] if layer in order else ()
    return other in below


def _inside(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)


def _inner(name: str) -> str:
    """A module's name without the root package."""
    return name.partition(".")[2]


def _caught(node: ast.ExceptHandler) -> list[str]:
    if node.type is None:
        return [""]
    types = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    return [t.attr if isinstance(t, ast.Attribute) else getattr(t, "id", "?") for t in types]


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
