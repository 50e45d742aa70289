"""synthesize(): a synthetic log, charged to the learners it was made from. No risk is measured."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl

from understudy.core.engine import progress
from understudy.core.files.storage.faults import require_room
from understudy.core.files.writing import check_new, check_not_input, check_suffix, write_tables
from understudy.core.names import SYNTHETIC_PREFIX
from understudy.core.options import settled
from understudy.core.privacy.balance import WAYS_OUT, Balance
from understudy.core.privacy.confirmation import Interrupted, goes_on
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import Noise
from understudy.core.privacy.risk import ByRisk
from understudy.core.privacy.spending import Account, Charge, Spending
from understudy.errors import RefusedError, UsageError
from understudy.logs.declared.companions import learners_file
from understudy.logs.expectation import check_worth
from understudy.logs.frames import rows_to_write
from understudy.logs.generators.generator import Generator
from understudy.logs.generators.registry import chosen_generator
from understudy.logs.interactions import Interactions, as_log
from understudy.logs.large.parquet_parts import write_parts
from understudy.logs.where import Where

# About what a row of a synthetic log takes in a text.
BYTES_PER_ROW = 32


@dataclass(frozen=True)
class Sampling:
    """How many synthetic learners are drawn, with which seed, and whether a poor result is wanted all the same."""

    n_learners: Annotated[int | None, "Number of synthetic learners (default: as many as real ones)."] = None
    seed: Annotated[int | None, "Seed of the sampling, for tests; drawn afresh by default."] = None
    meant_for: Annotated[
        str,
        "What the data is meant for: shares, difficulties, steps, or several with commas (default: the first two). "
        "Where the forecast says that little but noise would be left of it, nothing is spent.",
    ] = ""
    anyway: Annotated[bool, "Go on although little would be learned from the result."] = False

    def __post_init__(self) -> None:
        for name, least in (("n_learners", 1), ("seed", 0)):
            value = getattr(self, name)
            whole = isinstance(value, Integral) and not isinstance(value, bool)
            if value is not None and not (whole and value >= least):
                raise UsageError(
                    f"the {'number of synthetic learners' if name == 'n_learners' else 'seed'} is a whole number "
                    f"of at least {least}, not {value}.",
                    hint="leave it out, or give another.",
                    settings=(name,),
                )

    def rng(self) -> tuple[int, np.random.Generator]:
        """The seed and its generator. Whoever knows the seed can undo part of the randomness: it is kept back."""
        seed = secrets.randbits(64) if self.seed is None else self.seed
        return seed, np.random.default_rng(seed)


@dataclass(frozen=True)
class SynthesizeOptions(Sampling, ByRisk, Spending):
    """How a synthetic log is drawn and charged."""

    where: Annotated[
        str,
        "Only learners like this, by declared columns: group=B, group=B and score>=50, or so many of each kind: "
        "group=A:100, group=B:50. Drawn after the fit, at no price.",
    ] = ""


@dataclass(frozen=True)
class Synthesis:
    """A synthetic log that was charged: `log` may be given away as far as its guarantee says."""

    log: Interactions
    generator: Generator
    guarantee: Guarantee
    charge: Charge
    out: Path | None
    seeded: bool
    n_withdrawn: int

    def __repr__(self) -> str:
        return f"<Synthesis: {' '.join(self.lines())}>"

    def to_json(self) -> dict[str, Any]:
        """The result for machines."""
        return {
            "out": None if self.out is None else str(self.out),
            "learners_file": str(learners_file(self.out)) if self.out and self.log.learner_columns else None,
            "method": self.generator.label,
            "card": self.charge.card,
            "rows": self.log.n_rows,
            "learners": self.log.n_learners,
            "withdrawn": self.n_withdrawn,
            "cut_short": self.generator.cut_short_,
            "guarantee": self.guarantee.to_json(),
            "charge": self.charge.to_json(),
        }

    def lines(self) -> list[str]:
        """The result for people."""
        who = "renumbered real" if self.generator.keeps_rows else "synthetic"
        where = f"{self.out}: " if self.out is not None else ""
        lines = [
            f"{where}{self.log.n_rows} rows of {self.log.n_learners} {who} learners by {self.generator.label}.",
            *(
                [f"{learners_file(self.out)}: a row for each of them."]
                if self.out and self.log.learner_columns
                else []
            ),
            *filter(None, [self.generator.cut_short_]),
            *self.generator.details_.notes,
            f"Guarantee: {self.guarantee}.",
            self.charge.sentence(),
        ]
        if self.seeded:
            lines.append("Seeded: whoever knows the seed can undo part of the randomness.")
        if not self.guarantee.formal:
            lines.append("Before you give it away: a release measures the risk.")
        return lines


def check_room(log: Interactions, n_learners: int | None, out: Path) -> None:
    """Refuse a disk that hardly has room for a synthetic log: once noise was drawn, a full one would not be free."""
    share = 1.0 if n_learners is None else n_learners / max(log.n_learners, 1)
    require_room(out, int(BYTES_PER_ROW * share * log.n_rows))


def synthesize(
    log: Interactions,
    generator: Any = None,
    options: SynthesizeOptions = SynthesizeOptions(),  # noqa: B008 (frozen)
    *,
    out: Path | str | None = None,
    epsilon: float | None = None,
    noise: Noise | None = None,
    **settings: Any,
) -> Synthesis:
    """Charge the ledger, fit on all learners, sample, and write a file if `out` is given.

    The generator is `runs-dp` with this `epsilon` unless another is given; by default 8, or 4 where more names are
    declared than there are learners. The settings of `SynthesizeOptions` may be given as keywords.
    """
    options, log = settled(options, settings), as_log(log, elsewhere=True)
    given = generator
    generator = chosen_generator(given, epsilon, options.risk, log)
    log = as_log(log, elsewhere=generator.in_database)
    out = None if out is None else Path(out)
    outs = [] if out is None else [out, *([learners_file(out)] if log.learner_columns else [])]
    for file in outs:
        if file.suffix:
            check_suffix(file)
        check_not_input(file, *log.origin.files)
        check_new(file, folder=not file.suffix)
        check_room(log, options.n_learners, file)
    log.origin.refuse_people("the synthetic file", log.actions)
    account = Account.open(options, log.origin, simulated=log.simulated)
    log = replace(log, simulated=bool(account.simulated))
    guarantee = generator.guarantee_for(log)
    check_budget(account, guarantee, given)
    doubts = check_worth(log, generator, options.meant_for, anyway=options.anyway)
    where = Where.parse(options.where) if options.where else None
    if where is not None:
        # Before anything is spent; only a kind that turns out to be too rare is noticed later.
        where.check([column.declared for column in log.columns], options.n_learners)
    _, rng = options.rng()
    with account.charge(
        "synthesize", generator.label, guarantee, out=outs, noise=noise, doubts=doubts
    ) as charge:
        learned = fitted(generator, log, rng, charge.noise)
        wishes = {} if where is None else {"where": where}
        with progress.task("Sampling and writing"):
            synthetic = learned.sample(options.n_learners, rng, **wishes)
            if out is not None:
                _write(synthetic, out, generator.kind)
    return Synthesis(
        replace(synthetic, card=charge.card),
        generator,
        generator.guarantee_,
        charge,
        out,
        options.seed is not None,
        log.origin.n_withdrawn,
    )


def _write(synthetic: Interactions, out: Path, kind: str) -> None:
    """Write a file, or a folder of Parquet files where the name has no extension."""
    if out.suffix:
        write_tables(synthetic_tables(synthetic, out), kind=kind)
        return
    beside = {learners_file(out): synthetic.learners_to_polars(SYNTHETIC_PREFIX)}
    write_parts(
        synthetic, out, SYNTHETIC_PREFIX, kind=kind, beside=beside if synthetic.learner_columns else {}
    )


def synthetic_tables(synthetic: Interactions, out: Path) -> dict[Path, pl.DataFrame | pl.LazyFrame]:
    """What is written about synthetic learners: their rows, and a table with what is included about each of them."""
    tables = {out: rows_to_write(synthetic, SYNTHETIC_PREFIX)}
    if synthetic.learner_columns:
        tables[learners_file(out)] = synthetic.learners_to_polars(SYNTHETIC_PREFIX)
    return tables


def fitted(generator: Generator, log: Interactions, rng: np.random.Generator, noise: Noise) -> Generator:
    """The generator, fitted. An interrupt ends it, unless a person wants what was learned until then.

    What was measured before holds for a whole training, and a script that is interrupted is to end: so nothing is
    written from half of one unless somebody says so now, and then the card says it too.
    """
    try:
        return generator.fit(log, rng, noise)
    except KeyboardInterrupt as stop:
        if not generator.cut_short_:
            raise
        if not goes_on(
            Interrupted(f"{generator.cut_short_} The best weights so far are kept until you answer.")
        ):
            stop.add_note(generator.cut_short_)
            raise
        return generator


def check_budget(account: Account, guarantee: Guarantee, given: Any) -> Balance:
    """Refuse what passes the budget; a generator that was given has its epsilon and delta as options of its own."""
    try:
        return account.check(guarantee)
    except RefusedError as error:
        own = ("delta",) if given is None else ("delta", "epsilon")
        if isinstance(given, str) and "epsilon" in error.settings and error.fields["largest"]:
            written = f"{given.partition(':')[0]}:epsilon={error.fields['largest']:g}"
            error.hint = f"ask for {written}. {WAYS_OUT}"
        error.settings = tuple("method" if setting in own else setting for setting in error.settings)
        raise
