"""The README's tour, followed as it is written: every example runs, and answers what it says it does.

A fence of ``bash`` or ``python`` is run in one folder, ``sql`` is typed into the shell, and the fence of ``text`` after it is
what must come out; in it ``...`` stands for anything. The address is that of a node of the test's own, and ``lake serve``
starts that node, or starts it again.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import ROOT, Node

README = ROOT / "README.md"
ADDRESS = "127.0.0.1:8080"
CURL = """\
import argparse, sys, urllib.error, urllib.request
words = argparse.ArgumentParser()
for flag in ("-d", "--data-binary", "-o"):
    words.add_argument(flag)
words.add_argument("-s", action="store_true")
words.add_argument("-H", action="append")
words.add_argument("url")
given = words.parse_args()
body = open(given.data_binary[1:], "rb").read() if given.data_binary else given.d.encode()
headers = dict(line.split(": ", 1) for line in given.H or ["Content-Type: application/x-www-form-urlencoded"])
try:
    answer = urllib.request.urlopen(urllib.request.Request(given.url, body, headers))
except urllib.error.HTTPError as error:
    answer = error
(open(given.o, "wb") if given.o else sys.stdout.buffer).write(answer.read())
"""  # what stands in for curl where there is none
NOT_RUN = ("pip install '.[test]'",)  # all tests, of which this is one


@dataclass(frozen=True, slots=True)
class Example:
    """A fence that is run, what it must print, and the line it begins on."""

    line: int
    language: str
    text: str
    expected: str | None


def examples(text: str) -> Iterator[Example]:
    """The examples of a Markdown text, in order."""
    fences = list(re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    for number, fence in enumerate(fences):
        language, body = fence.groups()
        if language == "text":
            continue
        after = fences[number + 1] if number + 1 < len(fences) else None
        expected = after.group(2) if after is not None and after.group(1) == "text" else None
        yield Example(text.count("\n", 0, fence.start()) + 1, language, body, expected)


class Tour:
    """A folder that a reader works in, with the node that they started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.node: Node | None = None
        tools = folder / "tools"
        tools.mkdir()
        commands = {"lake": f'"{sys.executable}" -m lake "$@"', "python": f'"{sys.executable}" "$@"', "pip": "true"}
        if shutil.which("curl") is None:
            (tools / "curl.py").write_text(CURL)
            commands["curl"] = f'"{sys.executable}" "{tools}/curl.py" "$@"'
        for name, command in commands.items():
            (tools / name).write_text(f"#!/bin/sh\nexec {command}\n")
            (tools / name).chmod(0o755)
        self.environ = {name: value for name, value in os.environ.items() if not name.startswith("LAKE_")}
        self.environ |= {
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT),
            "LAKE_CONFIG_DIR": str(folder / "settings"),
        }  # fmt: skip

    def run(self, example: Example) -> str:
        """What an example prints."""
        if "lake serve ./demo" in example.text:
            return self._serve()
        match example.language:
            case "bash":
                return self._output(["bash", "-euo", "pipefail", "-c", self._local(example.text)])
            case "sql":
                return self._output(["lake", "./demo"], example.text)
            case "python":
                return self._output(["python", "-c", self._local(example.text)])
        raise AssertionError(f"README.md:{example.line}: nobody knows how to run {example.language}")

    def stop(self) -> None:
        """Ends the node."""
        if self.node is not None:
            self.node.stop()

    def _serve(self) -> str:
        self.stop()
        self.node = Node(Path("./demo"), environ=self.environ, at=self.folder)
        self.node.wait()
        return self.node.output().replace(f"127.0.0.1:{self.node.port}", ADDRESS)

    def _local(self, text: str) -> str:
        assert self.node is not None, "the tour starts a node first"
        return text.replace(ADDRESS, f"127.0.0.1:{self.node.port}")

    def _output(self, command: list[str], typed: str | None = None) -> str:
        found = shutil.which(command[0], path=self.environ["PATH"])
        done = subprocess.run(
            [found or command[0], *command[1:]], cwd=self.folder, env=self.environ, input=typed, capture_output=True,
            text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, f"{' '.join(command)}\n{typed or ''}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def agrees(printed: str, expected: str) -> bool:
    """Whether an output is as expected, but for what ``...`` stands for: a part of a line, or alone any lines."""
    pattern = ""
    for line in expected.splitlines(keepends=True):
        pattern += "(?:.*\n)*" if line == "...\n" else ".*".join(re.escape(part) for part in line.split("..."))
    return re.fullmatch(pattern, printed.rstrip("\n") + "\n") is not None


def test_the_tour(tmp_path: Path) -> None:
    """From the first line to the last, in order."""
    tour = Tour(tmp_path)
    ran = 0
    try:
        for example in examples(README.read_text(encoding="utf-8")):
            if any(words in example.text for words in NOT_RUN):
                continue
            printed = tour.run(example)
            ran += 1
            if example.expected is not None:
                assert agrees(printed, example.expected), f"README.md:{example.line}\n{example.text}\nprinted:\n{printed}"
    finally:
        tour.stop()
    assert ran >= 12


def test_what_it_points_to_is_there() -> None:
    """Files that the README names exist."""
    text = README.read_text(encoding="utf-8")
    for name in re.findall(r"`(lake/[\w/]+\.py)`", text) + re.findall(r"\]\(([\w/.]+)\)", text):
        assert (ROOT / name).exists(), name
