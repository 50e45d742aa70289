"""Data sets: registering them, reading the real table, and learners who withdraw."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from understudy.core.files.simulated import is_simulated
from understudy.core.privacy.ledger import Ledger
from understudy.core.privacy.population import (
    FOLDER_POPULATION,
    SIMULATED_POPULATION,
    new_data_set,
    normalised,
    resolve_population,
)
from understudy.core.privacy.spending import MARKED, Account
from understudy.desk.domain.learners import LEARNER, LearnerTable, learner_table, read_table
from understudy.desk.domain.people import NotFoundError, Person, Role, require_role
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.states import State
from understudy.desk.private.public_schema import PublicSchema, refuse_several_rows
from understudy.desk.private.schema import Schema
from understudy.desk.risk.released_summary import StageOne
from understudy.desk.service import Desk
from understudy.desk.store import audit_log
from understudy.desk.store.settings import LEDGER
from understudy.desk.store.tables import DataSetRow, RequestRow, WithdrawalRow, forget_runs
from understudy.errors import DataError, RefusedError, UsageError

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class DataSetView:
    """What every user may know about a data set."""

    name: str
    title: str
    description: str
    columns: tuple[str, ...]
    n_learners: int
    policy: Policy
    simulated: bool
    closed: bool
    n_requests: int
    schema: Schema | None
    """What is public about its columns, for private questions."""


@dataclass(frozen=True, repr=False)
class RealTable:
    """The real table as it is now, and a keyed hash that shows whether it is still the same."""

    table: LearnerTable
    hash: str
    version: int
    seed: int


def register(
    desk: Desk,
    who: Person,
    *,
    title: str,
    real: Path,
    synthetic: Path,
    policy: Policy,
    summary: Path | None = None,
    schema: Path | None = None,
    learner: str = LEARNER,
    ledger: Path | None = None,
    population: str = "",
    description: str = "",
) -> DataSetView:
    """Register a data set. Analyses will see the columns of the synthetic table, and no others."""
    require_role(who, Role.CUSTODIAN)
    files = {"real data": real, "synthetic data": synthetic, "summary": summary, "schema": schema}
    for words, path in files.items():
        if path is not None and not path.is_file():
            raise UsageError(f"there is no file for the {words}.", hint="check the path that you gave.")
    stand_in = read_table(synthetic, "the synthetic data")
    own = read_table(real, "the real data")
    columns = [name for name in stand_in.columns if name not in (LEARNER, learner)]
    table = learner_table(own, np.random.default_rng(0), columns=columns, learner=learner)
    _same_kinds(table.rows, stand_in.select(columns))
    simulated = is_simulated(real)
    _refuse_real_rows(own, stand_in, columns, learner, simulated=simulated)
    if summary is not None:
        # Whether it is about this table is found now, and not with the first request.
        StageOne.of(summary, table)
    public = None
    if schema is not None:
        stands_in = learner_table(
            stand_in,
            np.random.default_rng(0),
            columns=columns,
            learner=LEARNER if LEARNER in stand_in.columns else learner,
        )
        public = _declared(schema, table, stands_in)
    if population and not simulated:
        population = resolve_population(population, real, simulated=False)
    population = population or (SIMULATED_POPULATION if simulated else FOLDER_POPULATION)
    kept = (ledger or _ledger_of(desk, real, simulated)).resolve()
    name = new_data_set()
    with desk.database.writing() as session:
        if not simulated:
            _refuse_others_of(session, own[learner], kept, population)
        row = DataSetRow(
            name=name,
            title=title,
            description=description,
            real=str(real.resolve()),
            synthetic=str(synthetic.resolve()),
            summary=None if summary is None else str(summary.resolve()),
            learner=learner,
            columns=columns,
            schema=None if public is None else public.to_json(),
            n_learners=table.n_learners,
            policy=policy.to_json(),
            ledger=str(kept),
            population=population,
            simulated=simulated,
            seed=secrets.randbits(62),
        )
        session.add(row)
        session.flush()
        account_of(row).link()
        audit_log.append(session, who, "register data", detail={"data set": name, "title": title})
        return _view(session, row)


def listed(desk: Desk, who: Person) -> list[DataSetView]:
    """All data sets that are open, or all of them for a custodian."""
    with desk.database.reading() as session:
        rows = session.scalars(select(DataSetRow).order_by(DataSetRow.id))
        return [_view(session, row) for row in rows if not row.closed or who.role is Role.CUSTODIAN]


def view(desk: Desk, who: Person, name: str) -> DataSetView:
    """One data set."""
    with desk.database.reading() as session:
        return _view(session, find(session, name))


def synthetic_file(desk: Desk, who: Person, name: str) -> Path:
    """The synthetic table, the only file of a data set that is ever served."""
    with desk.database.reading() as session:
        path = Path(find(session, name).synthetic)
    if not path.is_file():
        raise NotFoundError("there is no such file any more.", hint="tell the custodian of this desk.")
    return path


def set_policy(desk: Desk, who: Person, name: str, policy: Policy) -> None:
    """New limits, from now on."""
    require_role(who, Role.CUSTODIAN)
    with desk.database.writing() as session:
        row = find(session, name)
        before, row.policy = row.policy, policy.to_json()
        # What was checked by other rules has to be checked again.
        row.version += 1
        changed = {key: value for key, value in row.policy.items() if before.get(key) != value}
        audit_log.append(session, who, "set policy", detail={"data set": name, "changed": changed})


def set_schema(desk: Desk, who: Person, name: str, schema: Path) -> None:
    """Declare what is public about the columns, from now on."""
    require_role(who, Role.CUSTODIAN)
    public = _declared(schema, real_table(desk, name).table, synthetic_table(desk, name))
    with desk.database.writing() as session:
        find(session, name).schema = public.to_json()
        audit_log.append(session, who, "set schema", detail={"data set": name})


def close(desk: Desk, who: Person, name: str) -> None:
    """No new requests for this data set."""
    require_role(who, Role.CUSTODIAN)
    with desk.database.writing() as session:
        find(session, name).closed = True
        audit_log.append(session, who, "close data", detail={"data set": name})


def withdraw_learner(desk: Desk, who: Person, name: str, learner: str) -> None:
    """Leave a learner out of every later run. Only a keyed hash of their name stays."""
    require_role(who, Role.CUSTODIAN)
    with desk.database.writing() as session:
        row = find(session, name)
        known = {_one_spelling(name) for name in _learners(row) if name is not None}
        if _one_spelling(learner) not in known:
            raise UsageError(
                "no learner of that name is in the data.", hint="give the name as the table has it."
            )
        digest = desk.settings.keyed("withdrawn", _one_spelling(learner))
        there = session.scalar(
            select(WithdrawalRow.id).where(
                WithdrawalRow.data_set_id == row.id, WithdrawalRow.learner == digest
            )
        )
        if there is not None:
            raise UsageError("this learner is left out already.", hint="nothing to do.")
        session.add(WithdrawalRow(data_set_id=row.id, learner=digest))
        row.version += 1
        row.n_learners -= 1
        held = RequestRow.data_set_id == row.id, RequestRow.state == State.HELD.value
        for request in session.scalars(select(RequestRow).where(*held)).all():
            # It was computed with them, and could not be released any more: it has to be run again.
            forget_runs(session, request, trial=False)
        audit_log.append(session, who, "withdraw a learner", detail={"data set": name})


def real_table(desk: Desk, name: str) -> RealTable:
    """The real learners who have not withdrawn. For the worker: no route leads here."""
    with desk.database.reading() as session:
        row = find(session, name)
        digests = set(
            session.scalars(select(WithdrawalRow.learner).where(WithdrawalRow.data_set_id == row.id))
        )
        path, columns, learner, seed, version = (
            Path(row.real),
            row.columns,
            row.learner,
            row.seed,
            row.version,
        )
        simulated = row.simulated
    if simulated and path.is_file() and not is_simulated(path):
        # Simulated learners have no limits, so the mark is looked for every time, not at registration only.
        raise RefusedError(
            "the data set was registered with simulated learners, but its file is not that one any more.",
            hint="register the new file as a data set of its own.",
            code="not-simulated",
        )
    content = desk.settings.keyed("real data", path.read_bytes() if path.is_file() else b"")
    frame = read_table(path, "the real data")
    if learner not in frame.columns:
        raise DataError("the real data has lost its column of learners.", hint="restore the file.")
    gone = [
        one
        for one in frame[learner].cast(str).unique().to_list()
        if one is not None
        # Either spelling: earlier versions kept names as the table had them.
        and any(desk.settings.keyed("withdrawn", name) in digests for name in {one, _one_spelling(one)})
    ]
    table = learner_table(
        frame, np.random.default_rng(seed), columns=columns, withdrawn=gone, learner=learner
    )
    return RealTable(table, desk.settings.keyed("version", f"{content} {sorted(digests)}"), version, seed)


def synthetic_table(desk: Desk, name: str) -> LearnerTable:
    """The stand-in, in the same form."""
    with desk.database.reading() as session:
        row = find(session, name)
        path, columns, seed, learner = Path(row.synthetic), row.columns, row.seed, row.learner
    frame = read_table(path, "the synthetic data")
    own = LEARNER if LEARNER in frame.columns else learner
    return learner_table(frame, np.random.default_rng(seed), columns=columns, learner=own)


def find(session: Session, name: str) -> DataSetRow:
    """The data set of this name."""
    row = session.scalar(select(DataSetRow).where(DataSetRow.name == name))
    if row is None:
        raise NotFoundError("there is no such data set.", hint="look at the list of data sets.")
    return row


def account_of(row: DataSetRow) -> Account:
    """The learners that every release on a data set is charged to, and their ledger."""
    return Account(
        ledger=Ledger(Path(row.ledger)),
        population=row.population,
        files=(Path(row.real),),
        data_sets=(row.name,),
        simulated=MARKED if row.simulated else "",
    )


def public_of(row: DataSetRow) -> PublicSchema | None:
    """What is public about the columns of a data set, if it was declared."""
    return None if row.schema is None else PublicSchema.from_json(row.schema)


def policy_of(row: DataSetRow) -> Policy:
    """The limits of a data set."""
    return Policy.from_json(row.policy)


def largest_code_bytes(desk: Desk) -> int:
    """How long code may be by the most generous policy of the desk; policies may change while it runs."""
    with desk.database.reading() as session:
        return max((policy_of(row).most_code_bytes for row in session.scalars(select(DataSetRow))), default=0)


def _ledger_of(desk: Desk, real: Path, simulated: bool) -> Path:
    # Simulated learners do not exist: their ledger stays with the desk.
    return (desk.settings.folder if simulated else real.resolve().parent) / LEDGER


def _one_spelling(name: str) -> str:
    """A learner's name, whatever type the table's column has: 1 for 1, 001 and 1.0.

    Numbers in a csv file lose their zeros, unless one learner has another kind of name. Nobody who withdrew may come
    back with that learner.
    """
    digits = re.fullmatch(r"\s*0*([0-9]+)(\.0*)?\s*", name)
    return digits[1] if digits else name


def _learners(row: DataSetRow) -> set[str]:
    frame = read_table(Path(row.real), "the real data")
    return set(frame[row.learner].cast(str).to_list())


def _refuse_real_rows(
    real: pl.DataFrame, synthetic: pl.DataFrame, columns: list[str], learner: str, *, simulated: bool
) -> None:
    """Every user can download the synthetic table: it must not be the real one, given by mistake.

    A row of few columns is in both by chance, so rows count where they tell learners apart, and when they are many.
    """
    own = next((name for name in (learner, LEARNER) if name in synthetic.columns), None)
    names = set() if own is None else set(synthetic[own].cast(str)) & set(real[learner].cast(str)) - {None}
    here, there = _comparable(synthetic, columns).unique(), _comparable(real, columns)
    alone = there.filter(there.is_unique())
    shared = here.join(alone, on=columns, how="inner", nulls_equal=True).height
    if (names and not simulated) or (alone.height > 0.5 * real.height and shared > 0.2 * here.height):
        raise DataError(
            "the synthetic table holds learners or rows of the real one, and researchers will download it.",
            hint="the real table comes first, then its synthetic stand-in; was one given for the other?",
        )


def _comparable(frame: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """A frame's columns, all numbers of one kind."""
    import polars as pl

    kinds = {name: pl.Float64 if frame[name].dtype.is_numeric() else pl.String for name in columns}
    return frame.select(columns).cast(kinds)  # type: ignore[arg-type]


def _refuse_others_of(session: Session, learners: pl.Series, ledger: Path, population: str) -> None:
    """Learners who are in another data set as well must be counted together: in one ledger, as one population."""
    names, kept = set(learners.cast(str).to_list()), (ledger, normalised(population))
    for row in session.scalars(select(DataSetRow).where(DataSetRow.simulated.is_(False))):
        apart = (Path(row.ledger), normalised(row.population)) != kept
        if apart and Path(row.real).is_file() and names & _learners(row):
            raise UsageError(
                f"some of these learners are in the data set '{row.title}' as well, which has another ledger or "
                "population.",
                hint="give the ledger and the population of that one, so that both count together.",
                settings=("ledger", "population"),
            )


def _declared(schema: Path, *tables: LearnerTable) -> PublicSchema:
    """The public schema of a file, for the columns of tables with one row per learner."""
    for table in tables:
        refuse_several_rows(table)
    return PublicSchema.read(schema).of_columns(tables[0].rows.columns)


def _same_kinds(real: pl.DataFrame, synthetic: pl.DataFrame) -> None:
    """Numbers where there are numbers: code that ran on one has to run on the other."""
    for name in synthetic.columns:
        if real[name].dtype.is_numeric() != synthetic[name].dtype.is_numeric():
            raise DataError(
                f"column '{name}' holds numbers in one of the two tables and something else in the other.",
                hint="make the real table and the synthetic one alike.",
            )


def _view(session: Session, row: DataSetRow) -> DataSetView:
    n_requests = session.scalar(select(func.count()).where(RequestRow.data_set_id == row.id)) or 0
    public = public_of(row)
    return DataSetView(
        row.name,
        row.title,
        row.description,
        (LEARNER, *row.columns),
        row.n_learners,
        policy_of(row),
        row.simulated,
        row.closed,
        n_requests,
        None if public is None else public.schema,
    )


def remove(desk: Desk, who: Person, name: str) -> None:
    """Remove a data set without requests; its files and its ledger stay, and the log says that it was here."""
    require_role(who, Role.CUSTODIAN)
    with desk.database.writing() as session:
        row = find(session, name)
        if session.scalar(select(func.count()).where(RequestRow.data_set_id == row.id)):
            raise RefusedError(
                "there are requests about this data set, which have to stay with what they were about.",
                hint=f"close it instead: understudy desk data close {name}",
            )
        session.execute(delete(WithdrawalRow).where(WithdrawalRow.data_set_id == row.id))
        audit_log.append(session, who, "remove data", detail={"data set": name, "title": row.title})
        session.delete(row)
