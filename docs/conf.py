"""How Sphinx builds the site: Markdown by MyST, the furo theme, nothing from another server."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import understudy

project = "Understudy"
copyright = "Understudy contributors"
version = release = understudy.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build", "**/*.template.md"]

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # help texts begin where they begin

html_theme = "furo"
html_title = "Understudy"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {"ArrayLike": "ArrayLike", "npt.ArrayLike": "ArrayLike"}
maximum_signature_line_length = 120
python_use_unqualified_type_names = True
# Types that have no page here: those of other libraries, and those inside the package.
nitpick_ignore_regex = [(r"py:.*", r".*")]


def plain_text(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with code in single backticks, as in Markdown; Sphinx expects its own markup."""
    for number, line in enumerate(lines):
        parts = re.split(r"`([^`]+)`", line)
        words = [re.sub(r"([*_|\\])", r"\\\1", part) for part in parts[0::2]]
        code = [rf"\ ``{part}``\ " for part in parts[1::2]] + [""]
        lines[number] = "".join(word + span for word, span in zip(words, code, strict=True))


def show_settings(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """List the settings of an options value: their help is in the annotations, as the command line shows it."""
    if what != "class" or not dataclasses.is_dataclass(value):
        return
    hints = get_type_hints(value, include_extras=True)
    helped = {
        name: get_args(hint)[1]
        for name, hint in hints.items()
        if get_origin(hint) is Annotated and isinstance(get_args(hint)[1], str)
    }
    if helped:
        lines += ["", *(f":param {name}: {text}" for name, text in helped.items()), ""]


def hide_signature(
    app: Any, what: str, name: str, value: Any, options: Any, signature: Any, returned: Any
) -> Any:
    """Values that functions return are not made by hand: their constructors are not shown."""
    if what == "class" and inspect.isclass(value) and dataclasses.is_dataclass(value):
        return "", ""
    return signature, returned


def setup(app: Any) -> None:
    """Connect them to autodoc."""
    app.connect("autodoc-process-docstring", plain_text)
    app.connect("autodoc-process-docstring", show_settings)
    app.connect("autodoc-process-signature", hide_signature)
