"""The pieces of a program that may hold what a person chose: strings, comments, names, numbers.

tree-sitter parses what it can. A text that does not parse whole is read twice: strings and
comments by `scanning`, names by every word outside of them, with tree-sitter's word for its use
where it has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from understudy.keystrokes.program_text.broken_code import scan
from understudy.keystrokes.program_text.languages import Language

if TYPE_CHECKING:
    from tree_sitter import Node

# How a name is used. "library" is a name in an import of a library that is known; an import of
# anything else is the learner's, or a typing error. "unknown" is a word of broken code.
DECLARED, DECLARED_MEMBER = "declared", "declared member"
MEMBER, CALL, TYPE, OBJECT, IMPORT, LIBRARY, BARE, UNKNOWN = (
    *("member", "call", "type", "object", "import", "library"),
    *("bare", "unknown"),
)

# Letters, digits, and the marks and invisible characters that can stand between them.
WORD = re.compile(r"[\w$\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u200b-\u200f\u2060-\u2064\ufeff\u00ad]+")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F_]+[lL]?|0[bB][01_]+[lL]?|0[oO][0-7_]+|\d[\d_]*(?:[eE]\d+)?[lLfFdDjJ]?")
_FORMAT = re.compile(r"(?:.?[<>=^])?[-+ ]?z?#?0?\d*[,_]?(?:\.\d*)?[bcdeEfFgGnosxX%]?", re.DOTALL)
_PYTHON_PREFIX = re.compile(r"(?i:[rbuft]|br|rb|fr|rf|tr|rt)$")

_NAMES = ("identifier", "type_identifier")
_NUMBERS = (
    *("integer", "float", "decimal_integer_literal", "hex_integer_literal", "octal_integer_literal"),
    *("binary_integer_literal", "decimal_floating_point_literal", "hex_floating_point_literal"),
)
_JAVA_DECLARING = {
    **dict.fromkeys(
        (
            *("class_declaration", "interface_declaration", "enum_declaration", "record_declaration"),
            *("annotation_type_declaration", "constructor_declaration", "compact_constructor_declaration"),
            *("formal_parameter", "catch_formal_parameter", "enhanced_for_statement", "resource"),
            *("instanceof_expression", "variable_declarator"),
        ),
        DECLARED,
    ),
    **dict.fromkeys(
        ("method_declaration", "annotation_type_element_declaration", "enum_constant"), DECLARED_MEMBER
    ),
}
_PYTHON_TARGETS = ("assignment", "augmented_assignment", "for_statement", "for_in_clause")
_PYTHON_PATTERNS = ("pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern")
_PYTHON_DECLARING = (
    *("parameters", "lambda_parameters", "typed_parameter", "list_splat_pattern", "splat_pattern"),
    *("dictionary_splat_pattern", "as_pattern_target", "global_statement", "nonlocal_statement"),
)


@dataclass(frozen=True, slots=True)
class Token:
    """Characters start:end of a text: the content of a string or comment, a name or a number."""

    start: int
    end: int
    kind: str
    use: str = ""
    raw: bool = False
    certain: bool = True


@dataclass(frozen=True, repr=False)
class Program:
    """A text with its tokens in order; `broken` if it does not parse whole."""

    text: str
    tokens: tuple[Token, ...]
    broken: bool


@dataclass(frozen=True, slots=True)
class _Step:
    """A node on the way from the root, and the field that it fills in the one above."""

    type: str
    field: str | None
    node: Node


def parse(text: str, language: Language) -> Program:
    """The tokens of a text; any text has some, whatever its errors."""
    # A lone half of a surrogate pair has no UTF-8; one character stays one character.
    data = text.encode("utf-8", "replace")
    tree = language.parser.parse(data)
    place = _places(data, len(text))
    found = list(_walk(tree.root_node, data, place, language))
    broken = tree.root_node.has_error or any(token.kind == "strings" and not token.certain for token in found)
    if broken:
        found = _of_broken(text, found, language)
    return Program(text, tuple(sorted(found, key=lambda token: token.start)), broken)


def _places(data: bytes, n_characters: int) -> list[int] | range:
    """The position in characters of each byte."""
    if len(data) == n_characters:
        return range(len(data) + 1)
    places, at = [], -1
    for byte in data:
        at += byte & 0xC0 != 0x80
        places.append(at)
    return [*places, n_characters]


def _walk(root: Node, data: bytes, place: list[int] | range, language: Language) -> Iterator[Token]:
    """Every string, comment, name and number that the parser sees."""
    use = _java_use if language.name == "java" else _python_use
    cursor = root.walk()
    steps: list[_Step] = []
    while True:
        node = cursor.node
        assert node is not None
        kind = node.type
        steps.append(_Step(kind, cursor.field_name, node))
        start, end = place[node.start_byte], place[node.end_byte]
        inside = True
        if kind.endswith("comment") and node.is_named:
            mark = 1 if language.name == "python" else 2
            closing = 2 if kind == "block_comment" else 0
            yield Token(start + mark, end - closing, "comments")
            inside = False
        elif kind in ("string_literal", "character_literal") and node.is_named:
            content = data[node.start_byte : node.end_byte]
            marks = 3 if content.startswith(b'"""') else 1
            # The grammar lets a string run over the line's end; Java does not.
            certain = marks == 3 or b"\n" not in content
            yield Token(start + marks, max(start + marks, end - marks), "strings", certain=certain)
            inside = False
        elif kind == "string_content":
            opening = data[steps[-2].node.start_byte :][:3].replace(b"'", b'"').partition(b'"')[0]
            yield Token(start, end, "strings", raw=b"r" in opening.lower())
            inside = False
        elif kind == "format_specifier":
            yield from _format_texts(node, data, place)
        elif kind in _NAMES and end > start:
            yield Token(start, end, "names", use(steps, language))
        elif kind in _NUMBERS:
            yield Token(start, end, "numbers")
        if inside and cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            steps.pop()
            if not cursor.goto_parent():
                return
        steps.pop()


def _format_texts(node: Node, data: bytes, place: list[int] | range) -> Iterator[Token]:
    """What in a format is more than a format: `{day:Monday %d}` holds a text."""
    bounds = [(child.start_byte, child.end_byte) for child in node.named_children]
    at = node.start_byte + 1
    for start, end in [*bounds, (node.end_byte, node.end_byte)]:
        if start > at and not _FORMAT.fullmatch(data[at:start].decode("utf-8", "replace")):
            yield Token(place[at], place[start], "strings")
        at = end


def _java_use(steps: list[_Step], language: Language) -> str:
    leaf, parent = steps[-1], steps[-2] if len(steps) > 1 else steps[-1]
    if leaf.field == "name" and parent.type in _JAVA_DECLARING:
        if parent.type == "variable_declarator" and len(steps) > 2 and steps[-3].type == "field_declaration":
            return DECLARED_MEMBER
        return _JAVA_DECLARING[parent.type]
    if parent.type in ("type_parameter", "inferred_parameters", "labeled_statement"):
        return DECLARED
    if parent.type in ("type_pattern", "record_pattern_component") and leaf.type == "identifier":
        return DECLARED
    if parent.type == "lambda_expression" and leaf.field == "parameters":
        return DECLARED
    around = {step.type for step in steps[:-1]}
    if "import_declaration" in around:
        whole = next(step for step in steps if step.type == "import_declaration")
        path = _text(whole.node).removeprefix("import").strip().removeprefix("static ").strip()
        return LIBRARY if language.has_import(path, _text(leaf.node)) else IMPORT
    if "package_declaration" in around:
        return DECLARED
    if leaf.type == "type_identifier" or parent.type in ("marker_annotation", "annotation"):
        return TYPE
    if parent.type == "method_invocation" and leaf.field == "name":
        return MEMBER
    if leaf.field in ("field", "key") or (parent.type == "scoped_identifier" and leaf.field == "name"):
        return MEMBER
    if parent.type == "method_reference":
        return OBJECT if leaf.node.start_byte == parent.node.start_byte else MEMBER
    if leaf.field in ("object", "scope"):
        return OBJECT
    return BARE


def _python_use(steps: list[_Step], language: Language) -> str:
    leaf, parent = steps[-1], steps[-2] if len(steps) > 1 else steps[-1]
    if parent.type in ("function_definition", "class_definition") and leaf.field == "name":
        return DECLARED_MEMBER if _in_class(steps[:-2]) else DECLARED
    if parent.type == "aliased_import" and leaf.field == "alias":
        return DECLARED
    if any(step.type.startswith("import_") or step.type == "future_import_statement" for step in steps):
        return LIBRARY if language.has_import(_python_module(steps), _text(leaf.node)) else IMPORT
    if parent.type == "attribute" and leaf.field == "attribute":
        return DECLARED_MEMBER if _is_target(steps[:-1]) else MEMBER
    if _is_target(steps):
        return DECLARED_MEMBER if _in_class(steps[: _below_target(steps)]) else DECLARED
    if parent.type in _PYTHON_DECLARING or (parent.type == "as_pattern" and leaf.field == "alias"):
        return DECLARED
    if parent.type in ("default_parameter", "typed_default_parameter", "named_expression"):
        return DECLARED if leaf.field == "name" else BARE
    if parent.type == "dotted_name" and len(steps) > 2 and steps[-3].type == "case_pattern":
        return DECLARED if parent.node.child_count == 1 else OBJECT
    if parent.type in ("keyword_argument", "keyword_pattern") and leaf.node == parent.node.children[0]:
        return MEMBER
    if (parent.type == "call" and leaf.field == "function") or parent.type == "decorator":
        return CALL
    if any(step.type == "type_parameter" and step.field == "type_parameters" for step in steps):
        return DECLARED
    if any(step.type == "type" for step in steps[-4:-1]):
        return TYPE
    return BARE


def _python_module(steps: list[_Step]) -> str:
    """The module named by the import that holds the last step."""
    for step in steps:
        if step.type == "future_import_statement":
            return "__future__"
        if step.type == "import_from_statement":
            module = step.node.child_by_field_name("module_name")
            return "" if module is None else _text(module)
        if step.type == "dotted_name":
            return _text(step.node)
    return ""


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _below_target(steps: list[_Step]) -> int:
    """The position on the way of the statement whose left side leads to the last step, or 0."""
    at = len(steps) - 1
    while at > 0 and steps[at - 1].type in _PYTHON_PATTERNS:
        at -= 1
    return at - 1 if at > 0 and steps[at].field == "left" and steps[at - 1].type in _PYTHON_TARGETS else 0


def _is_target(steps: list[_Step]) -> bool:
    return _below_target(steps) > 0


def _in_class(steps: list[_Step]) -> bool:
    """Whether a statement below these steps belongs to a class directly."""
    around = [
        step.type for step in steps if step.type not in ("decorated_definition", "expression_statement")
    ]
    return around[-2:] == ["class_definition", "block"]


def _of_broken(text: str, found: list[Token], language: Language) -> list[Token]:
    """The tokens of a text that does not parse: regions first, then every word outside of them."""
    regions = scan(text, language.name)
    known = {(token.start, token.end): token for token in found if token.kind in ("names", "numbers")}
    tokens = []
    bounds = [*((region.start, region.end) for region in regions), (len(text), len(text))]
    at = 0
    for start, end in bounds:
        for match in WORD.finditer(text, at, start):
            word, span = match.group(), match.span()
            if language.name == "python" and text[span[1] : span[1] + 1] in ("'", '"'):
                prefix = _PYTHON_PREFIX.search(word)
                if prefix and prefix.start() == 0:
                    continue
            if word[0].isdigit() and _NUMBER.fullmatch(word):
                tokens.append(Token(*span, "numbers"))
            elif span in known and known[span].kind == "names":
                tokens.append(Token(*span, "names", known[span].use))
            elif word not in language.keywords:
                tokens.append(Token(*span, "names", UNKNOWN))
        at = end
    tokens += [
        Token(region.start, region.end, region.kind, certain=region.certain)
        for region in regions
        if region.end > region.start
    ]
    return tokens
