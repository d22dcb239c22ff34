"""A builder of MLIR text: named values, constants once per function, structured loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field


def vector(element: str, lanes: int) -> str:
    """The type of ``lanes`` elements; a scalar for 0 lanes."""
    return f"vector<{lanes}x{element}>" if lanes else element


@dataclass
class Loop:
    """A loop being written: its index, the values it carries, and what it yields."""

    index: str
    carried: list[str]
    yields: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)


class Text:
    """Lines of one function; ``head`` holds constants and loads that every loop can use."""

    def __init__(self) -> None:
        self.head: list[str] = []
        self.lines: list[str] = []
        self.depth = 1
        self.count = 0
        self.constants: dict[tuple[str, str], str] = {}

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def emit(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def op(self, expression: str) -> str:
        """A line that computes one value; returns its name."""
        name = self.fresh()
        self.emit(f"{name} = {expression}")
        return name

    def hoisted(self, expression: str) -> str:
        """A value of the function's head, computed once for equal expressions."""
        key = (expression, "")
        if key not in self.constants:
            self.constants[key] = self.fresh()
            self.head.append(f"  {self.constants[key]} = {expression}")
        return self.constants[key]

    def constant(self, number: int, kind: str) -> str:
        """An integer constant, repeated in every lane of a vector type."""
        literal = f"dense<{number}>" if kind.startswith("vector") else str(number)
        return self.hoisted(f"arith.constant {literal} : {kind}")

    def pointer(self, base: str, terms: Sequence[tuple[str, int]], offset: int = 0) -> str:
        """``base`` plus ``offset`` bytes plus every index times its stride in bytes."""
        total = self.constant(offset, "i32") if offset else None
        for index, stride in terms:
            if stride == 0:
                continue
            if stride == 1:
                term = index
            else:
                term = self.op(f"arith.muli {index}, {self.constant(stride, 'i32')} overflow<nsw> : i32")
            total = term if total is None else self.op(f"arith.addi {total}, {term} overflow<nsw> : i32")
        if total is None:
            return base
        return self.op(f"llvm.getelementptr inbounds {base}[{total}] : (!llvm.ptr, i32) -> !llvm.ptr, i8")

    def load(self, pointer: str, kind: str, alignment: int) -> str:
        return self.op(f"llvm.load {pointer} {{alignment = {alignment} : i64}} : !llvm.ptr -> {kind}")

    def store(self, value: str, pointer: str, kind: str, alignment: int) -> None:
        self.emit(f"llvm.store {value}, {pointer} {{alignment = {alignment} : i64}} : {kind}, !llvm.ptr")

    def barrier(self) -> None:
        """Keeps earlier stores before later ones: on Hexagon, LLVM 22 may put a scalar store into the packet of an
        earlier vector store to the same place, where it comes first.
        """
        self.emit('llvm.inline_asm has_side_effects "", "~{memory}" : () -> ()')

    @contextmanager
    def loop(self, count: int, carried: Sequence[tuple[str, str]] = ()) -> Iterator[Loop]:
        """``count`` iterations carrying (value, type) pairs; the user sets ``yields`` before leaving."""
        if count == 1:
            single = Loop(self.constant(0, "i32"), [value for value, _ in carried])
            yield single
            single.results = list(single.yields)
            return
        names = [self.fresh() for _ in carried]
        loop = Loop(self.fresh(), names)
        bounds = [self.constant(number, "i32") for number in (0, count, 1)]
        types = ", ".join(kind for _, kind in carried)
        arguments = ", ".join(f"{name} = {value}" for name, (value, _) in zip(names, carried, strict=True))
        suffix = f" iter_args({arguments}) -> ({types})" if carried else ""
        result = self.fresh()
        prefix = f"{result}:{len(carried)} = " if carried else ""
        self.emit(f"{prefix}scf.for {loop.index} = {bounds[0]} to {bounds[1]} step {bounds[2]}{suffix} : i32 {{")
        self.depth += 1
        yield loop
        if carried:
            self.emit(f"scf.yield {', '.join(loop.yields)} : {types}")
        self.depth -= 1
        self.emit("}")
        loop.results = [f"{result}#{position}" for position in range(len(carried))]

    def function(self, name: str, arguments: Sequence[str]) -> str:
        """The whole function over pointers that do not overlap."""
        list_ = ", ".join(f"{argument}: !llvm.ptr {{llvm.noalias}}" for argument in arguments)
        body = "\n".join([*self.head, *self.lines])
        return f"func.func private @{name}({list_}) {{\n{body}\n  return\n}}\n"
