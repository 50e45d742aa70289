"""page(): the student's page, one file that computes in the browser and opens no connection."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from understudy.core.files.outcomes import PassMark
from understudy.core.files.words import counted
from understudy.core.files.writing import check_not_input, check_parent, write_text
from understudy.core.options import settled
from understudy.core.pages.card import RISK_ACCEPTED
from understudy.core.pages.render import render
from understudy.core.privacy.guarantee import ADJACENCY, UNIT, Guarantee
from understudy.errors import DataError, RefusedError, UsageError
from understudy.exams.ability import blanks_are_wrong, pass_share
from understudy.exams.points_posterior import DOUBT_WEIGHTS, DOUBTS, lattice, steps_needed
from understudy.exams.posterior import PASS_MARK, grid_of, n_needed, slope, usable
from understudy.exams.released_file import Difficulties, Item

_TEMPLATES = Path(__file__).parent / "templates"
_PLACEHOLDER = re.compile(r"\{\w+\}")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")


@dataclass(frozen=True)
class PageOptions:
    """The language of the page, and what it says."""

    language: Annotated[str | None, "Language of the page: en (the default) or de."] = None
    strings: Annotated[
        Path | None,
        "File with all texts of the page, for another language: a translation of the English ones.",
    ] = None
    title: Annotated[str, "Title of the page (default: that of the difficulties)."] = ""
    pass_mark: Annotated[float, "Share of the items that must be right to pass."] = PASS_MARK
    accept_risk: Annotated[
        str, "Publish difficulties without a guarantee, for this reason; the page prints it."
    ] = ""

    def __post_init__(self) -> None:
        if self.language is not None and self.strings is not None:
            raise UsageError(
                "both a language and a file of texts were given.",
                hint="the file names its own language.",
                settings=("language", "strings"),
            )


@dataclass(frozen=True)
class Page:
    """A page for students, and the difficulties on it."""

    html: str
    difficulties: Difficulties
    out: Path | None

    def to_json(self) -> dict[str, Any]:
        """What the page is made from, for machines."""
        return {
            "out": None if self.out is None else str(self.out),
            "items": len(self.difficulties.items),
            "guarantee": self.difficulties.guarantee.to_json(),
        }

    def lines(self) -> list[str]:
        """What the page is made from, for people."""
        where = "" if self.out is None else f"{self.out}: "
        return [
            f"{where}a page for students, {counted(len(self.difficulties.items), 'item')}, works offline.",
            f"Guarantee of the difficulties: {self.difficulties.guarantee}.",
        ]

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.html)}" width="100%" height="600"></iframe>'


def page(
    difficulties: Difficulties | Path | str,
    options: PageOptions = PageOptions(),  # noqa: B008 (frozen)
    *,
    out: Path | str | None = None,
    **settings: Any,
) -> Page:
    """The page on which students compute their own ability, written to a file if `out` is given.

    The settings of `PageOptions` may be given as keywords. Difficulties without a formal guarantee are refused
    unless `accept_risk` gives a reason.
    """
    options = settled(options, settings)
    out = None if out is None else Path(out)
    if out is not None:
        if out.suffix.lower() not in (".html", ".htm"):
            raise UsageError(
                f"asked to write {out.name}; a page is written as .html.", hint="choose a name with .html."
            )
        check_parent(out)
        if not isinstance(difficulties, Difficulties):
            check_not_input(out, Path(difficulties))
    released, reason = Difficulties.of(difficulties), options.accept_risk.strip()
    if reason and not released.guarantee.formal:
        # As on every card: what was decided is part of the statement.
        released = replace(released, guarantee=released.guarantee.with_caveats(RISK_ACCEPTED))
    text = student_page(
        released,
        strings=read_strings(options.strings or options.language or "en"),
        title=options.title,
        pass_mark=options.pass_mark,
        accept_risk=reason,
    )
    if out is not None:
        write_text(out, text)
    return Page(text, released, out)


def languages() -> tuple[str, ...]:
    """The languages that the page comes in."""
    return tuple(sorted(path.name.split(".")[1] for path in _TEMPLATES.glob("strings.*.json")))


def english_strings() -> str:
    """The English texts as they stand in their file: what a translation begins with."""
    return (_TEMPLATES / "strings.en.json").read_text(encoding="utf-8")


def read_strings(source: str | Path) -> dict[str, str]:
    """Every text of the page: of a language that comes along, or of a file with the same keys."""
    if isinstance(source, str):
        if source not in languages():
            raise UsageError(
                f"there is no page in the language '{source}'; there are {', '.join(languages())}.",
                hint="give a file with the texts of another language.",
                settings=("strings",),
            )
        source = _TEMPLATES / f"strings.{source}.json"
    try:
        content = json.loads(source.read_text(encoding="utf-8"))
        json.dumps(content, ensure_ascii=False).encode("utf-8")
    except OSError as error:
        raise UsageError(
            f"asked to read texts from {source}, which cannot be opened ({error.strerror}).",
            hint="check the path.",
        ) from None
    except (ValueError, RecursionError):
        raise _unfit(f"{source} is not a JSON file, or a damaged one.") from None
    return check_strings(content, str(source))


def check_strings(content: Any, source: str) -> dict[str, str]:
    """The texts, if they have the keys and the placeholders of the English ones."""
    model = json.loads(english_strings())
    if not isinstance(content, dict) or not all(isinstance(text, str) for text in content.values()):
        raise _unfit(f"{source} does not hold texts by their keys.")
    missing, unknown = [k for k in model if k not in content], [k for k in content if k not in model]
    wrong = [
        key
        for key in model
        if key in content and set(_PLACEHOLDER.findall(content[key])) != set(_PLACEHOLDER.findall(model[key]))
    ]
    other = "other {placeholders} than the English ones"
    problems = [
        f"{counted(len(keys), what)} {is_not if len(keys) == 1 else are_not} "
        f"({', '.join(keys[:10])}{', ...' if len(keys) > 10 else ''})"
        for keys, what, is_not, are_not in (
            (missing, "text", "is missing", "are missing"),
            (unknown, "key", "is unknown", "are unknown"),
            (wrong, "text", f"has {other}", f"have {other}"),
        )
        if keys
    ]
    if problems:
        raise _unfit(f"{source} does not fit the page: {'; '.join(problems)}.")
    if not _LANGUAGE.fullmatch(content["lang"]):
        raise DataError(
            f"{source} names a language under 'lang' that is not a language tag.",
            hint="write it as in fr or pt-BR.",
        )
    return content


def _unfit(message: str) -> DataError:
    return DataError(
        message,
        hint="translate the English texts, keeping keys and {placeholders}.",
        code="unfit-texts",
        settings=("print_strings",),
    )


def student_page(
    difficulties: Difficulties,
    *,
    strings: Mapping[str, str] | None = None,
    title: str = "",
    pass_mark: float = PASS_MARK,
    accept_risk: str = "",
) -> str:
    """The page as HTML. Difficulties without a formal guarantee need a reason in `accept_risk`.

    The policy in its head allows its own style and script, by their hashes, and nothing else: no
    connection, picture, form target or further script, whatever the names of the items are.
    """
    guarantee = difficulties.guarantee
    if not guarantee.formal and not accept_risk:
        raise RefusedError(
            f"asked for a page with difficulties that have no formal guarantee: {_why(guarantee)}.",
            hint="release them with an epsilon, or give a reason, which the page prints.",
            code="no-guarantee",
            settings=("accept_risk",),
        )
    texts = read_strings("en") if strings is None else strings
    css, js = _template("student.css"), _template("student.js")
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(js)}'",
            f"style-src '{_hash(css)}'",
            "img-src 'none'",
            "connect-src 'none'",
            "form-action 'none'",
            "base-uri 'none'",
        )
    )
    return render(
        "exams/student.html",
        strings=texts,
        title=title or difficulties.title or texts["title"],
        simulated=difficulties.provenance.get("simulated") is True,
        formal=guarantee.formal,
        blanks_are_wrong=blanks_are_wrong(difficulties),
        points=difficulties.has_points,
        # A reason on a page whose difficulties need none would only confuse.
        accept_risk="" if guarantee.formal else accept_risk,
        policy=policy,
        css=css,
        js=js,
        data=_embedded(_content(difficulties, texts, pass_mark)),
    )


def _right_from(share: float | str | None) -> dict[str, Any] | None:
    """What counts as right: a share of the points, or a number up to or from which answers are right."""
    if isinstance(share, str):
        mark = PassMark.of(share)
        return {"at_most" if mark.low_is_good else "at_least": mark.points}
    return None if share is None else {"share": share}


def _content(difficulties: Difficulties, texts: Mapping[str, str], pass_mark: float) -> dict[str, Any]:
    """All that the script needs: it computes, and decides nothing that is decided here."""
    items, grid, guarantee = usable(difficulties), grid_of(difficulties), difficulties.guarantee
    n_needed(pass_mark, len(items))  # refuses a mark that is not a share
    points = None
    if difficulties.has_points:
        total = sum(item.points.maximum for item in items)
        points = {"needed": steps_needed(items, pass_mark)[1], "total": total}
    return {
        "items": [
            {
                "name": item.name,
                "difficulty": item.difficulty,
                "standard_error": item.standard_error,
                "slope": slope(item),
                "guess": item.guess,
                "chance": item.chance,
                "multiple": multiple,
                **_points(item, difficulties),
            }
            for item, multiple in zip(items, lattice(items)[1], strict=True)
        ],
        "left_out": [item.name for item in difficulties.items if item.difficulty is None],
        "steps": difficulties.steps,
        "prior": {"mean": difficulties.ability.mean, "sd": difficulties.ability.sd},
        "grid": {"low": grid.low, "high": grid.high, "n_points": grid.n_points},
        "needed": n_needed(pass_mark, len(items)) if points is None else steps_needed(items, pass_mark)[0],
        "points": points,
        "doubts": np.column_stack([DOUBTS, DOUBT_WEIGHTS]).tolist(),
        "blanks_are_wrong": blanks_are_wrong(difficulties),
        "right_from": _right_from(pass_share(difficulties)),
        "guarantee": {
            "formal": guarantee.formal,
            "epsilon": guarantee.epsilon if guarantee.formal else None,
            "delta": guarantee.delta if guarantee.formal else None,
            "usual": guarantee.unit == UNIT and guarantee.adjacency == ADJACENCY,
            "statement": str(guarantee),
            "reason": guarantee.reason,
        },
        "strings": dict(texts),
    }


def _points(item: Item, difficulties: Difficulties) -> dict[str, Any]:
    """What only items of an exam with points have."""
    if not difficulties.has_points:
        return {}
    return {
        "credits": item.credits or (0.0, 0.0),
        "discrimination": item.discrimination,
        "maximum": item.points.maximum,
    }


def _why(guarantee: Guarantee) -> str:
    return guarantee.reason or "no reason is given in the file"


def _template(name: str) -> str:
    # With universal newlines: browsers hash line feeds, whatever the file system made of them.
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _embedded(content: Any) -> str:
    """JSON that no HTML parser takes for markup: `</script>` and `<!--` need a `<`."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
