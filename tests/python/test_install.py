"""What the documents say about building and installing, in fresh folders and environments. Needs a package index."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.long

TRAIN = """
import torch, rockmate
layers = [torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64)) for _ in range(4)]
model = torch.nn.Sequential(*layers)
planned = rockmate.Rockmate(model, budget="60%")
loss = planned(torch.randn(512, 64)).square().mean()
loss.backward()
assert planned.plan.recomputed and all(p.grad is not None for p in model.parameters())
print(rockmate.__file__)
"""


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env={**environment, **variables}, capture_output=True, text=True, timeout=3000
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that belong to the project, without anything that was built among them."""
    folder = tmp_path_factory.mktemp("sources")
    for name in run("git", "ls-files", "-z", cwd=ROOT).split("\0"):
        if name and (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def test_wheel_installs_in_a_clean_environment(sources: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    build = ["scikit-build-core", "pybind11", "cmake", "ninja", "highsbox>=1.15,<1.16", "numpy"]
    run(python, "-m", "pip", "install", f"torch=={torch.__version__.split('+')[0]}", *build, cwd=tmp_path)
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    wheel = [python, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path / "wheels", sources]
    run(*wheel, cwd=tmp_path, PATH=path, CMAKE_BUILD_PARALLEL_LEVEL="2")
    (built,) = (tmp_path / "wheels").glob("rockmate-*.whl")
    run(python, "-m", "pip", "install", built, cwd=tmp_path)
    assert str(tmp_path / "venv") in run(python, "-c", TRAIN, cwd=tmp_path, ROCKMATE_CACHE_DIR=str(tmp_path / "cache"))
    assert "plan" in run(python.parent / "rockmate", "--help", cwd=tmp_path)
    assert "torch" not in run("ldd", python.parent / "rockmate", cwd=tmp_path)


def test_planning_library_builds_without_torch(sources: Path) -> None:
    """The commands of CONTRIBUTING.md, with this Python's build tools."""
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert cmake is not None
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    lines = [line.strip() for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines() if line.startswith("    cmake ")]
    assert len(lines) == 2
    for line in lines:
        run("bash", "-c", line, cwd=sources, PATH=path, CMAKE_BUILD_PARALLEL_LEVEL="2")
