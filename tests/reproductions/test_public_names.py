"""The reproductions use the package as a stranger would: by its public names."""

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "reproductions"


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda p: str(p.relative_to(FOLDER)))
def test_no_private_name_of_the_package_is_imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("understudy"):
            names = [*node.module.split("."), *(alias.name for alias in node.names)]
            assert not [name for name in names if name.startswith("_")], f"line {node.lineno}"
