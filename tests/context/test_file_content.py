"""Files whose digests are right and whose content is not: only a ContextError may come of them."""

from __future__ import annotations

import copy
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hexqdq.context import container, file
from hexqdq.context.executors import make_executor
from hexqdq.context.run import Runner
from hexqdq.errors import ContextError
from tests.context.samples import conv_model, sample_input

DATA = file.to_bytes(conv_model())
JSON_SECTIONS = ("graph", "report", "segment/segment0/units", "segment/segment0/steps")
WRONG: tuple[Any, ...] = (None, -1, 1 << 70, 0.5, "text", [], {}, [None])


def sealed(header: dict[str, Any], sections: dict[str, bytes]) -> bytes:
    """The file of that content, with right digests."""
    return b"".join(container.chunks(header, list(sections.items())))


def contents() -> tuple[dict[str, Any], dict[str, bytes]]:
    opened = container.open_container(DATA)
    header = {name: value for name, value in opened.header.items() if name != "sections"}
    return header, {name: bytes(opened.section(name)) for name in opened.sections}


def places(data: Any) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a JSON document."""
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        yield (key,)
        for rest in places(value):
            yield (key, *rest)


def mutants(data: Any) -> Iterator[Any]:
    """The document with each of its values in turn missing or wrong."""
    for place in places(data):
        for wrong in WRONG:
            changed = copy.deepcopy(data)
            inner = changed
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = wrong
            yield changed
        changed = copy.deepcopy(data)
        inner = changed
        for key in place[:-1]:
            inner = inner[key]
        del inner[place[-1]]
        yield changed


def use(data: bytes) -> None:
    context = file.read(data)
    context.verify()
    Runner(context, make_executor("reference"))


def test_the_rebuilt_file_is_the_file() -> None:
    assert sealed(*contents()) == DATA
    use(DATA)


@pytest.mark.parametrize("name", ["header", *JSON_SECTIONS])
def test_content_of_the_wrong_form_is_told(name: str) -> None:
    header, sections = contents()
    told = 0
    for changed in mutants(header if name == "header" else json.loads(sections[name])):
        try:
            if name == "header":
                use(sealed(changed, sections))
            else:
                use(sealed(header, {**sections, name: json.dumps(changed).encode()}))
        except ContextError:
            told += 1
    assert told > 20


@pytest.mark.parametrize("name", sorted(contents()[1]))
def test_a_section_that_is_missing_is_told(name: str) -> None:
    header, sections = contents()
    with pytest.raises(ContextError, match=f"has no section '{name}'"):
        use(sealed(header, {other: data for other, data in sections.items() if other != name}))


@pytest.mark.parametrize("name", [*JSON_SECTIONS, "segment/segment0/constants", "segment/segment0/unit_constants"])
def test_a_section_of_another_length_is_told(name: str) -> None:
    header, sections = contents()
    with pytest.raises(ContextError, match=name.replace("unit_constants", "units")):
        use(sealed(header, {**sections, name: b""}))


WRITER = """
import dataclasses, sys
from hexqdq.context import file
from tests.context.samples import conv_model, conv_segment
compiled = conv_model(dataclasses.replace(conv_segment(), constants=bytes(64 << 20)))
print("ready", flush=True)
while True:
    file.write(compiled, sys.argv[1])
"""


def test_a_kill_while_writing_leaves_a_whole_file(tmp_path: Path, root: Path) -> None:
    path = file.write(conv_model(), tmp_path / "model.ctx")
    for delay in (0.02, 0.08, 0.15):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], cwd=root, stdout=subprocess.PIPE)
        assert writer.stdout and writer.stdout.readline() == b"ready\n"
        time.sleep(delay)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        file.read(path).verify()
    outputs = Runner(file.read(path), make_executor("reference")).run({"x": sample_input()})
    assert list(outputs) == ["y"]


def test_the_document_tells_the_format(root: Path) -> None:
    text = (root / "docs" / "context-format.md").read_text(encoding="utf-8")
    opened = container.open_container(DATA)
    for key in opened.header:
        assert f"`{key}`" in text
    for name in [*opened.sections, "host/<part>"]:
        assert f"`{name.replace('segment0', '<name>').replace('object/hexagon', 'object/<key>')}`" in text
    assert f"format {container.FORMAT_VERSION}" in text
    assert container.MAGIC.hex(" ").upper() in text
    assert f"| {container.PREFIX_BYTES} | | the header" in text
