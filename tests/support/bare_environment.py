"""An environment in which only the wheel and its required dependencies can be imported.

Run by the test of the wheel as a program: `python bare_environment.py SITE` puts the unpacked wheel first and
hides every installed package that the wheel does not require, as an empty environment would. It reads commands
as JSON from its input, runs them one after the other, and prints what came of each.
"""

import contextlib
import importlib.abc
import importlib.metadata as metadata
import importlib.util
import io
import json
import re
import sys


def required(name: str) -> set[str]:
    """The distributions that a plain `pip install` of the wheel would bring."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        current = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if current in found:
            continue
        found.add(current)
        try:
            requirements = metadata.requires(current) or []
        except metadata.PackageNotFoundError:
            continue
        for requirement in requirements:
            if "extra ==" not in requirement and "extra==" not in requirement:
                waiting.append(re.match(r"[A-Za-z0-9._-]+", requirement).group())
    return found


class Hidden(importlib.abc.MetaPathFinder):
    """Refuses to find packages that are not required."""

    def __init__(self, allowed: set[str]) -> None:
        self.hidden = {
            package
            for package, names in metadata.packages_distributions().items()
            if not {re.sub(r"[-_.]+", "-", name).lower() for name in names} & allowed
        }

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.hidden:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
        return None


def hide(site: str) -> None:
    """Leave the unpacked wheel and what it requires."""
    sys.path.insert(0, site)
    hidden = Hidden(required("understudy"))
    sys.meta_path.insert(0, hidden)
    find_spec = importlib.util.find_spec
    importlib.util.find_spec = lambda name, package=None: (
        None if name.partition(".")[0] in hidden.hidden else find_spec(name, package)
    )


def main() -> None:
    hide(sys.argv[1])
    import understudy
    from understudy.cli.app import run

    assert understudy.__file__.startswith(sys.argv[1]), understudy.__file__
    results = []
    for arguments in json.load(sys.stdin):
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(arguments)
        err.flush()
        results.append([code, err.buffer.getvalue().decode()])
    sys.stdout.write(json.dumps(results) + "\n")


if __name__ == "__main__":
    main()
