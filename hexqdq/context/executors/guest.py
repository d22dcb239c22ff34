"""A process spoken to over pipes: whole writes, whole reads, and what it said when it ended."""

from __future__ import annotations

import os
import selectors
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from typing import IO

from hexqdq.errors import ExecutorError

STDERR_TAIL = 2000
"""Characters of a guest's last words that an error shows."""
NEXT = "run it with executor host or reference, and report the message"


class Guest:
    """One child process with pipes to its standard input and output.

    It is ended when the object is closed or collected; when this process dies, the end of its
    input ends it. ``timeout_seconds`` is how long it may make no progress.
    """

    def __init__(self, subject: str, command: Sequence[str], descriptors: tuple[int, ...], timeout_seconds: float):
        self.subject = subject
        self.timeout_seconds = timeout_seconds
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the guest
        try:
            self._process = subprocess.Popen(
                command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                pass_fds=descriptors,
            )
        except OSError as error:
            self._stderr.close()
            raise ExecutorError(subject, f"{command[0]} does not start: {error.strerror}", NEXT) from error
        self._end = weakref.finalize(self, _end, self._process, self._stderr)
        assert self._process.stdin and self._process.stdout
        self._stdin, self._stdout = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._stdin, False)

    @property
    def alive(self) -> bool:
        return self._end.alive and self._process.poll() is None

    def close(self) -> None:
        self._end()

    def send(self, data: bytes | memoryview) -> None:
        """Writes all of it; raises ExecutorError where the guest has ended or does not read."""
        view = memoryview(data).cast("B")
        while view:
            self._wait(self._stdin, selectors.EVENT_WRITE, "reads no further")
            try:
                view = view[os.write(self._stdin, view) :]
            except BrokenPipeError:
                raise self._failure("ended before it had read its input") from None

    def receive(self, nbytes: int) -> bytearray:
        """Exactly ``nbytes``; raises ExecutorError where the guest has ended or is stuck."""
        data = bytearray(nbytes)
        view = memoryview(data)
        while view:
            self._wait(self._stdout, selectors.EVENT_READ, "answers no further")
            count = os.readv(self._stdout, [view])
            if count == 0:
                raise self._failure(f"ended {len(view)} bytes short of its answer of {nbytes}")
            view = view[count:]
        return data

    def _wait(self, descriptor: int, event: int, problem: str) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, event)
            if not selector.select(self.timeout_seconds):
                raise self._failure(f"{problem} for {self.timeout_seconds:g} s")

    def _failure(self, problem: str) -> ExecutorError:
        """The error for a guest that is of no more use, with its exit status; ends the guest."""
        try:
            status = f"exit status {self._process.wait(0.5)}"
        except subprocess.TimeoutExpired:
            status = "still running"
        self._stderr.seek(0)
        words = self._stderr.read().decode(errors="replace").strip()[-STDERR_TAIL:]
        self.close()
        return ExecutorError(self.subject, f"the guest {problem} ({status}): {words or 'it said nothing'}", NEXT)


def _end(process: subprocess.Popen[bytes], stderr: IO[bytes]) -> None:
    """Closes the guest's input, which ends it; kills it where that does not."""
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()
    try:
        process.wait(0.2)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    stderr.close()
