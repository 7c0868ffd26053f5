"""Every code block of README and docs/ does what it says.

The Python blocks and the calls of the ``rockmate`` command of one document run in their order, in one namespace and one folder,
with what a reader has at hand: a model, its inputs, and the files that the text speaks of. JSON blocks are files of the format
that they name. Of ``make`` lines the targets are looked up; what builds and installs is run by ``test_install.py``.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import models
import pytest
import torch
from command import find_command

import rockmate
from rockmate import _planner

ROOT = Path(__file__).parents[2]
DOCUMENTS = ["README.md", "CONTRIBUTING.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))]
SMALL_GRAPH = {
    "directed": True,
    "multigraph": False,
    "graph": {},
    "nodes": [{"id": i, "name": f"op{i}", "cost_cpu": 1 + i, "cost_ram": 100, "backward": i > 2} for i in range(5)],
    "links": [{"source": i, "target": i + 1} for i in range(4)],
}


@dataclass(frozen=True)
class Block:
    """``line`` is where it begins in its document; ``language`` is empty for blocks that are only indented."""

    line: int
    language: str
    text: str


def blocks_of(document: str) -> list[Block]:
    """The fenced and the indented blocks, in order."""
    blocks: list[Block] = []
    lines = (ROOT / document).read_text().splitlines()
    at = 0
    while at < len(lines):
        begin = at
        if fence := re.match(r"```(\w*)", lines[at]):
            at = next(i for i in range(at + 1, len(lines)) if lines[i].startswith("```"))
            blocks.append(Block(begin + 1, fence.group(1), "\n".join(lines[begin + 1 : at])))
        elif lines[at].startswith("    ") and (begin == 0 or not lines[begin - 1].strip()):
            while at + 1 < len(lines) and lines[at + 1].startswith("    "):
                at += 1
            blocks.append(Block(begin + 1, "", "\n".join(line[4:] for line in lines[begin : at + 1])))
        at += 1
    return blocks


class Reader:
    """Somebody who follows a document, in a folder of their own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(folder)
        torch.manual_seed(0)
        model, inputs = models.gpt2()

        def step() -> None:
            self.names["model"](**inputs).loss.backward()

        self.names: dict[str, Any] = {
            "__name__": "__main__",
            "torch": torch,
            "rockmate": rockmate,
            "model": model,
            "new_model": lambda: models.gpt2()[0],
            "inputs": inputs,
            "ids": inputs["input_ids"],
            "step": step,
        }
        self.graph = Path("graph.json")
        self.schedule = Path("schedule.json")
        Path("published.json").write_text(json.dumps(SMALL_GRAPH))
        Path("run.json").write_text(json.dumps({"format": "rockmate-measured", "version": 1, "peak_bytes": 1000}))

    def python(self, text: str, where: str) -> None:
        if "= rockmate.Rockmate(model" in text:
            self.names["model"] = models.gpt2()[0]
        exec(compile(text, where, "exec"), self.names)

    def shell(self, line: str) -> None:
        words = shlex.split(line, comments=True)
        if words[0] == "make":
            rules = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            assert all(word in rules for word in words[1:] if "=" not in word), line
        elif words[0] == "rockmate":
            command = find_command()
            if command is None:
                pytest.skip("there is no rockmate command beside this Python")
            self._files_for(words)
            if words[1] in ("plan", "curve", "compare", "report"):  # a reader has time, a test has not
                if "--time-limit" in words:
                    at = words.index("--time-limit")
                    del words[at : at + 2]
                words += ["--time-limit", "2"]
            done = subprocess.run([command, *words[1:]], capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        else:
            assert words[0] in ("pip", "cmake", ".", "python", ".venv/bin/python"), f"nobody runs this line: {line}"

    def _files_for(self, words: list[str]) -> None:
        """The files that an earlier step of the reader's would have left."""
        if "GRAPH" in words:
            words[words.index("GRAPH")] = str(self.graph)
        if not self.graph.exists():
            plan = rockmate.Rockmate(models.gpt2()[0], budget="50%", sample_inputs=self.names["inputs"]).plan
            assert plan is not None
            plan.save(self.graph, self.schedule)

    def data(self, text: str) -> None:
        content = json.loads(text)
        kind = content.get("format", "comparison")
        if kind == "rockmate-graph":
            self.names["example"] = _planner.TrainingGraph.from_json(text)
        elif kind == "rockmate-schedule":
            schedule = _planner.Schedule.from_json(text)
            assert _planner.verify(self.names["example"], schedule) is None
        elif kind == "rockmate-device":
            Path("device.json").write_text(text)
            self.shell("rockmate curve graph.json --device device.json")
        elif kind == "rockmate-measured":
            Path("measured.json").write_text(text)
            self.shell(
                "rockmate report graph.json schedule.json --measured measured.json --no-curve --no-planners -o page.html"
            )
        else:
            assert kind == "comparison" and "<html" in _planner.comparison_report(text)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_code_blocks(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = blocks_of(document)
    if not blocks:
        return
    reader = Reader(tmp_path, monkeypatch)
    for block in blocks:
        if block.language == "python":
            reader.python(block.text, f"{document}:{block.line}")
        elif block.language == "json":
            reader.data(block.text)
        elif block.language in ("", "sh") and re.match(r"(make|rockmate|pip|cmake|\.|python|\.venv\S*) ", block.text):
            for line in block.text.splitlines():
                reader.shell(line)
        else:
            assert block.language in ("", "text"), f"{document}:{block.line}: nobody runs a block of {block.language}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text()
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if not target.startswith("http"):
            assert ((ROOT / document).parent / target).exists(), target
    for target in re.findall(r"`((?:docs|bench|src|python|tests|scripts|examples)/[\w./-]+)`", text):
        assert (ROOT / target).exists(), target
