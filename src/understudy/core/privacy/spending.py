"""Spending: the one place that charges a release to its learners, for every verb, from a command or from Python.

A verb opens an `Account` (who the learners are, where their ledger is), checks early that the budget would
do, and makes its release inside `account.charge(...)`. What happens then is the same for all of them:

- the charge is written before any noise is drawn, in one transaction, so that nothing can leave unpaid and
  two processes cannot spend the same budget;
- a person at the terminal is told the price first and asked, a script is told and goes on (`confirmation.py`);
- what fails before noise was drawn is taken back. Once noise of a guarantee was drawn, an error keeps the charge:
  that it failed, where, and with which words may depend on the noisy result, and so says something about the learners
  (`SpentError` is for results that are known to be of no use);
- two things say nothing about the noise before writing began, and are taken back: a fault of the machine (`OSError`),
  and an interrupt, since nothing that depends on the noise has left the process by then, not even as progress. Later
  a disk may be full because the noisy result is large, and the user may have looked at the unfinished file;
- once something was written the charge stays, and the exception's notes say what was charged and written.

Simulated learners have no budget. That they are is known by the mark of the file, or declared: then the
ledger notes it, and refuses it where it knows the same file as one of real learners.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from understudy.core.files.origin import Origin
from understudy.core.files.simulated import is_simulated
from understudy.core.files.source import Guess, refuse_guesses
from understudy.core.files.writing import Written
from understudy.core.privacy.balance import REFUSED, WAYS_OUT, Balance
from understudy.core.privacy.composition import Cost
from understudy.core.privacy.confirmation import Doubt, Question, confirmed
from understudy.core.privacy.declarations import DECLARED
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.ledger import Entry, Ledger, ledger_path, new_card_id
from understudy.core.privacy.noise import Noise, WatchedNoise, os_noise
from understudy.core.privacy.population import FOLDER_POPULATION, SIMULATED_POPULATION, resolve_population
from understudy.core.privacy.risk import RiskLimit
from understudy.core.privacy.rosters import Roster
from understudy.errors import RefusedError, UsageError

MARKED = "marked by simulate"


@dataclass(frozen=True)
class Spending:
    """How a release is charged; the same choices for every verb."""

    population: Annotated[
        str | None,
        "Whose data this is: everything about the same learners adds up (default: the file's learners).",
    ] = None
    ledger: Annotated[Path | None, "Where the ledger is kept, if not beside the data."] = None
    simulated: Annotated[
        bool,
        "Declare that these learners are simulated: no budget is spent. The ledger notes who said so.",
    ] = False
    other_learners: Annotated[
        bool,
        "Declare that these are other learners than those of the same names or the same file in the ledger: they get a "
        "budget of their own. It needs a reason.",
    ] = False
    reason: Annotated[
        str, "Why these are other learners; the ledger keeps it, with who said so and when."
    ] = ""


class SpentError(RefusedError):
    """The noisy result itself cannot be used; the charge stays, since that is known now."""

    code = "spent"


class NotConfirmedError(RefusedError):
    """A person was asked before the charge, and said no."""

    code = "not-confirmed"


@dataclass
class Charge:
    """A release under way: where its noise comes from, and what was charged for it."""

    account: Account
    card: str
    guarantee: Guarantee
    noise: WatchedNoise = field(default_factory=lambda: WatchedNoise(os_noise()))

    @property
    def balance(self) -> Balance:
        """What is spent and what remains."""
        return self.account.balance()

    def to_json(self) -> dict[str, Any]:
        """What was charged to whom, for a machine."""
        balance = self.balance
        return {
            "card": self.card,
            "population": self.account.population,
            "ledger": None if self.account.ledger is None else str(self.account.ledger.path),
            "epsilon": self.guarantee.epsilon if self.guarantee.formal else None,
            "spent": balance.counted,
            "sum": balance.epsilon,
            "limit": None if self.account.simulated else balance.limit,
            "remaining": None if self.account.simulated else balance.remaining(self.guarantee),
        }

    def sentence(self) -> str:
        """What was charged and what remains."""
        if self.account.simulated:
            return "Simulated learners: no budget was spent."
        balance = self.balance
        if not self.guarantee.formal:
            return f"Noted in the ledger for '{self.account.population}' (card {self.card}); it has no epsilon to add."
        whom = f"'{self.account.population}' (card {self.card})"
        return f"Charged epsilon {self.guarantee.epsilon:g} to {whom}: {balance.state(self.guarantee)}."


@dataclass(frozen=True)
class Account:
    """The learners that a release is about, and the ledger that knows what was spent on them."""

    ledger: Ledger | None
    """None only for simulated learners in memory: they have no budget, and there is no place for a ledger."""
    population: str
    files: tuple[Path, ...]
    data_sets: tuple[str, ...]
    simulated: str
    """How it is known that the learners are simulated; empty for real ones."""
    roster: Roster | None = None
    """The learners by digests of their ids, where ids are known."""
    other_learners: bool = False
    """Whether it was declared that learners of the same names are others."""
    reason: str = ""
    """Why they are others."""
    guesses: tuple[Guess, ...] = ()
    """What was decided by looking at the learners' rows when they were read."""
    risk: str = ""
    """The risk in place of an epsilon, if the custodian stated one."""
    agreed: tuple[tuple[Guarantee, tuple[str, ...]], ...] = ()
    """The charge that a person agreed to already, and the populations that are said to hold other learners."""

    @classmethod
    def open(
        cls,
        spending: Spending,
        origin: Origin,
        *,
        simulated: bool,
        files: Sequence[Path] = (),
        data_sets: Sequence[str] = (),
    ) -> Account:
        """The account of data that was read from a file, or of a frame in memory.

        `files` hold the same learners' data besides that file, and `data_sets` name it.
        """
        _refuse_other_types(spending)
        path = origin.path
        how = MARKED if simulated else DECLARED if spending.simulated else ""
        named = tuple(dict.fromkeys((*origin.files, *files)))
        if how == MARKED and not all(is_simulated(file) for file in named if file.exists()):
            how = DECLARED  # by a program: no file says so
        population = resolve_population(spending.population, path, simulated=bool(how))
        nowhere = how == MARKED and path is None and spending.ledger is None
        given = None if spending.ledger is None else Path(spending.ledger)
        ledger = None if nowhere else Ledger(ledger_path(path, given))
        roster = Roster.of(origin.digests, path)
        account = cls(
            ledger,
            population,
            named,
            tuple(data_sets),
            how,
            roster,
            spending.other_learners,
            spending.reason.strip(),
            origin.guesses,
            getattr(spending, "risk", ""),
        )
        if spending.ledger is not None:
            account._refuse_second_ledger()
        return account

    def _refuse_second_ledger(self) -> None:
        """Refuse a ledger elsewhere while the one beside the data knows its learners: nothing would add up."""
        assert self.ledger is not None
        for file in self.files:
            beside = Ledger(ledger_path(file))
            if beside.path == self.ledger.path.resolve() or not beside.path.exists():
                continue
            if beside.knows_as_real([file], self.roster):
                raise RefusedError(
                    f"the ledger {beside.path} knows what was released about the learners of {file.name}, and "
                    f"another one was named: what is released about them would not add up.",
                    hint="leave the ledger out, or name that one.",
                    code="ledger-elsewhere",
                    settings=("ledger",),
                    ledger=str(beside.path),
                )

    def balance(self) -> Balance:
        """What has been spent on these learners."""
        if self.ledger is None:
            return Balance(self.population, math.inf, 0.0, 0.0, 0, 0)
        return self.ledger.balance(self.population)

    def check(self, guarantee: Guarantee) -> Balance:
        """Refuse what could not be charged, before anything is computed; nothing is written."""
        self._refuse_guesses(guarantee)
        if self.ledger is None:
            return self.balance()
        try:
            return self.ledger.check(
                self.population,
                guarantee,
                files=self.files,
                data_sets=self.data_sets,
                simulated=self.simulated,
                roster=self.roster,
                others=self.others,
                reason=self.reason,
            )
        except RefusedError as error:
            # Whoever prints a way out can name the file and the ledger that it is about.
            error.fields["ledger"] = str(self.ledger.path)
            error.fields["files"] = [str(file) for file in self.files]
            if error.code == "budget" and self.risk:
                raise _smaller_risk(error, self.risk, guarantee) from None
            raise

    def _refuse_guesses(self, guarantee: Guarantee) -> None:
        """Reading is part of the guarantee."""
        if guarantee.formal:
            refuse_guesses(self.guesses)

    def known_as(self) -> tuple[str, ...]:
        """Other populations as which the ledger knows these learners, or with `other_learners` their files."""
        if self.ledger is None:
            return ()
        return self.ledger.known_as(
            self.population, self.roster, self.files, self.data_sets, apart=self.other_learners
        )

    def doubts(self) -> tuple[Doubt, ...]:
        """Why the ledger may not know these learners, for the custodian."""
        if self.ledger is None or self.simulated:
            return ()
        known = self.known_as()
        if known and not self.other_learners:
            names = " and ".join(f"'{name}'" for name in known)
            sentence = (
                f"The ledger knows these learners, or many of them, as {names}: a charge would be refused."
            )
            return (Doubt(sentence, ("population", "other_learners", "reason")),)
        if self.population == FOLDER_POPULATION:
            return ()
        others = [
            name
            for name in self.ledger.unrelated_populations(self.population, self.files, self.data_sets)
            if name not in known
        ]
        if not others:
            return ()
        others_are = (
            f"'{others[0]}' is counted"
            if len(others) == 1
            else f"{len(others)} other populations are counted"
        )
        return (
            Doubt(
                f"In this ledger {others_are} apart. If the learners are the same, one population adds them up.",
                ("population",),
            ),
        )

    def entries(self) -> list[Entry]:
        """Every entry of the ledger that counts for these learners."""
        if self.ledger is None:
            return []
        related = self.ledger.related(self.population, self.files, self.data_sets)
        return [entry for entry in self.ledger.entries() if entry.population in related]

    def same_learners(self, cards: Sequence[str]) -> str | None:
        """The population of a release with one of these cards, if it is about learners of this account too."""
        if self.ledger is None:
            return None
        return self.ledger.same_learners(self.population, self.files, cards, self.data_sets)

    def has_cards(self, cards: Sequence[str]) -> bool:
        """Whether all these releases were charged in this ledger."""
        return self.ledger is not None and self.ledger.has_cards(cards)

    def link(self) -> None:
        """Note whose learners the files hold; nothing is spent, and everything about them adds up from now on."""
        if self.ledger is not None and not self.simulated:
            self.ledger.link(self.population, self.files, self.data_sets, self.roster)

    def note_refusal(self, kind: str, method: str, guarantee: Guarantee, risk: dict[str, Any]) -> None:
        """Note that a release was refused after looking at the data; it costs nothing, and leaves a trace."""
        note = {**risk, "refused": kind}
        self._record(new_card_id(), REFUSED, method, guarantee, note, others=self.others)

    def _record(
        self,
        card: str,
        kind: str,
        method: str,
        guarantee: Guarantee,
        risk: dict[str, Any] | None = None,
        at_most: Mapping[str, float] | None = None,
        *,
        once: bool = False,
        alone: bool = False,
        others: Sequence[str] = (),
    ) -> None:
        if self.ledger is not None:
            self.ledger.record(
                population=self.population,
                card=card,
                kind=kind,
                method=method,
                guarantee=guarantee,
                risk=risk,
                files=self.files,
                data_sets=self.data_sets,
                simulated=self.simulated,
                roster=self.roster,
                others=others,
                reason=self.reason,
                at_most=at_most,
                once=once,
                alone=alone,
            )

    @contextlib.contextmanager
    def charge(
        self,
        kind: str,
        method: str,
        guarantee: Guarantee,
        *,
        out: Path | Sequence[Path] | None = None,
        card: str = "",
        risk: dict[str, Any] | None = None,
        noise: Noise | None = None,
        at_most: Mapping[str, float] | None = None,
        once: bool = False,
        alone: bool = False,
        doubts: Sequence[Doubt] = (),
    ) -> Iterator[Charge]:
        """Charge a release, and make it inside the block; see the module's first lines.

        `out` is what the release writes, one path or several. Noise that is not secret is for tests, and
        leaves no guarantee.
        A person is asked first, unless `agree` did; `doubts` are those that the verb has beside the account's own.
        With `once` a charge of the same card is not repeated, and stays whatever happens: the release will
        be tried again. With `alone` it is refused if a release without a guarantee counts for these learners.
        """
        if noise is not None and not noise.secret:
            guarantee = Guarantee.seeded(guarantee)
        self._refuse_guesses(guarantee)
        others = dict(self.agree(guarantee, doubts).agreed)[guarantee]
        charge = Charge(self, card or new_card_id(), guarantee, WatchedNoise(noise or os_noise()))
        written = Written(() if out is None else (out,) if isinstance(out, Path) else tuple(out))
        try:
            self._record(
                charge.card, kind, method, guarantee, risk, at_most, once=once, alone=alone, others=others
            )
            yield charge
        except (Exception, KeyboardInterrupt, SystemExit) as error:
            self._settle(charge, written, error, once=once)
            raise

    def _settle(self, charge: Charge, written: Written, error: BaseException, *, once: bool) -> None:
        """Take back what nobody has seen anything of, and note the truth on the error."""
        if self.ledger is None or not self.has_charged(charge.card):
            if not isinstance(error, Exception):
                error.add_note("Nothing was charged.")
            return
        if once and isinstance(error, Exception):
            return  # it will be tried again
        if not (once or written.now() or _may_depend_on_noise(charge, error, begun=written.begun())):
            self.ledger.take_back(charge.card, "nothing was written")
            error.add_note("Nothing was written, and the charge was taken back.")
        else:
            error.add_note(self._what_stays(charge, written))

    def agree(self, guarantee: Guarantee, doubts: Sequence[Doubt] = ()) -> Account:
        """State the price of a release, and ask a person about it and about doubts if one is there.

        Whatever takes long before its charge asks here first; the account that comes back does not ask again.
        """
        if guarantee in dict(self.agreed):
            return self
        # The user agreed to what the ledger knew when asked, not to what it learned later.
        others = self.others
        if not self.simulated and guarantee.formal:
            question = Question((*self.doubts(), *doubts), guarantee, self.check(guarantee))
            if not confirmed(question):
                raise NotConfirmedError(
                    "nothing was charged.", hint="run the same command again, and answer y, to go on."
                )
        return replace(self, agreed=(*self.agreed, (guarantee, others)))

    @property
    def others(self) -> tuple[str, ...]:
        """The populations that hold other learners, as was declared."""
        return self.known_as() if self.other_learners else ()

    def has_charged(self, card: str) -> bool:
        """Whether the release of this card stands in the ledger."""
        return self.ledger is not None and self.ledger.has_cards([card])

    def _what_stays(self, charge: Charge, written: Written) -> str:
        """The truth, from the ledger itself: a stop may fall into the very moment of the charge."""
        result = written.sentence() if written.now() or not written.begun() else "writing had begun"
        if self.population == SIMULATED_POPULATION:
            return f"No budget was spent; {result}."
        assert self.ledger is not None
        why = "" if written.begun() or not charge.noise.drawn else ": noise was drawn by then"
        return f"The charge (card {charge.card}) stays in the ledger {self.ledger.path}, and {result}{why}."


def _may_depend_on_noise(charge: Charge, error: BaseException, *, begun: bool) -> bool:
    """Whether an error or an interrupt may say something about the noisy result; `begun` says that writing had begun.

    Any error may, once there is such a result. A fault of the machine comes by itself before writing began; then the
    size of what is written decides. A user who interrupts may have looked at what was begun.
    """
    if not isinstance(error, Exception):
        return begun
    drawn = charge.guarantee.formal and charge.noise.drawn
    return isinstance(error, SpentError) or (drawn and (begun or not isinstance(error, OSError)))


def _smaller_risk(error: RefusedError, risk: str, guarantee: Guarantee) -> RefusedError:
    """The refusal of a budget, in terms of the risk that was stated."""
    wanted, largest = RiskLimit.parse(risk), error.fields["largest"]
    fitting = ""
    if largest:
        cost = Cost.of(guarantee).at(largest)
        fitting = wanted.floored(replace(guarantee, epsilon=largest, rho=cost.rho))
    offer = f"a risk of '{fitting}' fits" if fitting else "no smaller risk fits"
    return RefusedError(
        f"{error.message} The risk '{risk}' is epsilon {guarantee.epsilon:g} here; {offer}.",
        hint=f"state the risk '{fitting}'. {WAYS_OUT}" if fitting else WAYS_OUT,
        code=error.code,
        settings=tuple("risk" if setting == "epsilon" else setting for setting in error.settings),
        **{**error.fields, "risk": fitting},
    )


def _refuse_other_types(spending: Spending) -> None:
    """From Python anything may come: a text such as "no" would count as true, and lift every limit."""
    for setting, what in (("simulated", "simulated"), ("other_learners", "others")):
        if not isinstance(getattr(spending, setting), bool):
            raise UsageError(
                f"whether learners are {what} is True or False.",
                hint="give one of them.",
                settings=(setting,),
            )
    if not isinstance(spending.reason, str):
        raise UsageError(
            "a reason is a text.", hint="say why these are other learners.", settings=("reason",)
        )
    if spending.reason.strip() and not spending.other_learners:
        raise UsageError(
            "a reason was given, but these learners were not declared to be others.",
            hint="declare that they are other learners, or leave the reason out.",
            code="reason-for-nothing",
            settings=("other_learners", "reason"),
        )
    if not isinstance(spending.ledger, Path | str | None):
        raise UsageError("the ledger is named by its path.", hint="give the path.", settings=("ledger",))
    if not isinstance(spending.population, str | None):
        raise UsageError(
            "the name of a population is a text.", hint="such as '7b, spring 2024'.", settings=("population",)
        )
