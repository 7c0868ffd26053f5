"""Prints what pyproject.toml asks for, one requirement a line: the dependencies and those of the named extras."""

import sys
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
print(*project["dependencies"], *(line for extra in sys.argv[1:] for line in extras[extra]), sep="\n")
