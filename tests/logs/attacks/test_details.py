"""Attacks on times and declared columns: against loops over sets, planted members, and a control."""

from collections import Counter, defaultdict
from dataclasses import replace
from functools import partial
from itertools import combinations, pairwise

import numpy as np
import pytest

from understudy.core.attacks.estimate import auc_with_error
from understudy.logs.attacks.fingerprints import PRIOR, RARE, Fingerprints, mixed
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.attacks.quasi_identifiers import QuasiIdentifiers
from understudy.logs.attacks.scores import detail_scores, scores_without_refits
from understudy.logs.attacks.shadow import cheap_scores, joint_linear_scores
from understudy.logs.attacks.statistics import KINDS, N_BANDS
from understudy.logs.attacks.timing import TimingTable
from understudy.logs.audit import audit, train_shadow_attack
from understudy.logs.generators.baselines import Drop
from understudy.logs.simulated.classroom import Classroom

pytestmark = pytest.mark.oracle

ROOM = Classroom(n_learners=80, n_actions=8, timed=True)
NAMES = ["timing", "timing-likelihood", "columns", "columns-likelihood"]


@pytest.fixture(scope="module")
def log():
    return ROOM.simulate(np.random.default_rng(1))


@pytest.fixture(scope="module")
def released(log):
    """Half of the rows of half of the learners."""
    members = log.select(np.arange(40))
    return Drop(0.5).fit(members).sample(rng=np.random.default_rng(2))


def learners(log):
    """Rows of each learner as (time in seconds, action, outcome, hint, device)."""
    seconds = log.time.astype("datetime64[s]").astype(int).tolist()
    row = {column.declared.name: column.cells.tolist() for column in log.row_columns}
    rows = list(
        zip(seconds, log.action.tolist(), log.outcome.tolist(), row["hint"], row["device"], strict=True)
    )
    return [rows[a:b] for a, b in pairwise(log.offsets)]


def moments(rows):
    """Fingerprints of times by kind, as a reader of the docstring would list them."""
    gaps = [after[0] - before[0] for before, after in pairwise(rows)]
    return {
        "time": [r[0] for r in rows],
        "minute": [(r[0] // 60, r[1]) for r in rows],
        "hour": [(r[0] // 3600, r[1]) for r in rows],
        "two gaps": [(a, b) for a, b in pairwise(gaps) if a <= 1800 and b <= 1800],
        "between": [(b[1], g, a[1]) for (b, a), g in zip(pairwise(rows), gaps, strict=True) if g <= 1800],
    }


def table_rows(log):
    cells = zip(*(column.cells.tolist() for column in log.learner_columns), strict=True)
    return [tuple("missing" if cell != cell else cell for cell in row) for row in cells]


def column_marks(log):
    """Fingerprints of columns by kind, for each learner."""
    marks = []
    for own, rows in zip(table_rows(log), learners(log), strict=True):
        kinds = {"row": [own], "with sequence": [(*own, rows[0][1], len(rows))] if rows else []}
        kinds |= {pair: [tuple(own[place] for place in pair)] for pair in combinations(range(len(own)), 2)}
        before = [-1, *(r[1] for r in rows)]
        kinds["rows"] = [(*r[3:], 2 * r[1] + r[2], b) for r, b in zip(rows, before, strict=False)]
        marks.append(kinds)
    return marks


def plain_matches(population, synthetic):
    """Rare fingerprints found less the share found among equally rare ones, by loops."""
    scores = np.zeros(len(population))
    for kind in population[0]:
        there = {mark for learner in synthetic for mark in learner[kind]}
        held = Counter(mark for learner in population for mark in set(learner[kind]))
        found = defaultdict(list)
        for mark, n in held.items():
            found[n].append(mark in there)
        for i, learner in enumerate(population):
            for mark in set(learner[kind]):
                if held[mark] <= RARE:
                    scores[i] += (mark in there) - np.mean(found[held[mark]])
    return scores


def plain_ratios(population, synthetic):
    """Log-ratios of shares, by loops over one kind."""
    total, there = Counter(), Counter()
    for learner in population:
        total.update(learner)
    for learner in synthetic:
        there.update(learner)
    scores = []
    for learner in population:
        score = 0.0
        for mark, count in Counter(learner).items():
            others = (total[mark] - count + PRIOR / len(total)) / (sum(total.values()) - len(learner) + PRIOR)
            share = (there[mark] + PRIOR * others) / (sum(there.values()) + PRIOR)
            score += count * np.log(share / others)
        scores.append(score)
    return scores


def test_timing_is_what_loops_find(log, released):
    found = TimingTable(log).scores(released)["timing"]
    wanted = plain_matches([moments(r) for r in learners(log)], [moments(r) for r in learners(released)])
    np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_columns_are_what_loops_find(log, released):
    found = QuasiIdentifiers(log).scores(released)["columns"]
    np.testing.assert_allclose(found, plain_matches(column_marks(log), column_marks(released)), atol=1e-9)


def test_the_likelihood_ratio_of_one_kind_is_that_of_loops(log, released):
    def hours(each):
        return [[r[0] // 3600 % 168 for r in rows] for rows in learners(each)]

    def occurrences(each):
        return each.learner, mixed(each.time.astype("datetime64[h]").astype(int) % 168)

    found = Fingerprints(occurrences(log), log.n_learners).log_ratios(occurrences(released))
    np.testing.assert_allclose(found, plain_ratios(hours(log), hours(released)), atol=1e-9)


def test_mixed_numbers_keep_rows_apart():
    rng = np.random.default_rng(0)
    rows = np.unique(rng.integers(-5, 400, (30_000, 3)), axis=0)
    assert len(np.unique(mixed(*rows.T))) == len(rows)
    assert len(np.unique(mixed(*rows.T[::-1]))) == len(rows)
    assert mixed([1.5], [2]).item() != mixed([2], [1.5]).item()


@pytest.mark.parametrize("name", NAMES)
def test_members_are_found_and_strangers_are_not(name):
    """The standard error of a mean of eight areas is 0.065 / sqrt(8); the control is a release of strangers."""
    found, control = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        log, strangers = ROOM.simulate(rng), ROOM.simulate(rng)
        member = rng.permutation(80) < 40
        knowledge = Knowledge(log, 40)
        scores = partial(detail_scores, knowledge)
        found.append(auc_with_error(scores(log.select(member))[name], member)[0])
        control.append(auc_with_error(scores(strangers.select(np.arange(40)))[name], member)[0])
    assert np.mean(found) > (0.6 if name.endswith("likelihood") else 0.95)
    assert np.mean(control) == pytest.approx(0.5, abs=4 * 0.065 / np.sqrt(8))


def shifted(log):
    """Every learner's times moved by a number of seconds of their own, so that only gaps stay."""
    shift = np.random.default_rng(3).integers(0, 10**6, log.n_learners)
    return replace(log, time=log.time + shift[log.learner].astype("timedelta64[s]"), columns=())


def rounded(log):
    """Times cut to the minute."""
    return replace(log, time=log.time.astype("datetime64[m]").astype("datetime64[us]"), columns=())


@pytest.mark.parametrize("change", [shifted, rounded])
def test_times_that_were_shifted_or_rounded_are_found(log, change):
    member = np.arange(80) < 40
    scores = TimingTable(log).scores(change(log.select(member)))["timing"]
    assert auc_with_error(scores, member)[0] > 0.95


def test_an_audit_has_the_attacks_only_where_both_logs_have_what_they_need(log, released):
    halves = log.select(np.arange(40)), log.select(np.arange(40, 80))
    plain = replace(released, time=None, term=None, columns=())
    for synthetic, there in (
        (released, set(NAMES)),
        (replace(released, columns=()), {"timing", "timing-likelihood"}),
        (replace(released, time=None, term=None), {"columns", "columns-likelihood"}),
        (plain, set()),
    ):
        found = audit(*halves, synthetic)
        assert {e.attack for e in found.risk.estimates} & set(NAMES) == there
        assert ("gap_ks" in found.utility) == ("timing" in there)
    # What is not told about the population does not change the other attacks.
    bare = audit(*(replace(half, time=None, term=None, columns=()) for half in halves), plain)
    assert found.risk.worst.auc == bare.risk.worst.auc


def test_statistics_of_times_and_columns_by_counting(log):
    """Cells that five learners or more have, by counting; of what is rarer nothing is left."""
    statistics = Knowledge(log, 40).statistics
    kinds = statistics.kind // N_BANDS
    values = {name: statistics.real[kinds == KINDS.index(name)] for name in KINDS}
    rows = learners(log)
    hours, having = np.zeros(168), [set() for _ in range(168)]
    for number, learner in enumerate(rows):
        for r in learner:
            hours[(r[0] // 3600 + 72) % 168] += 1 / log.n_rows
            having[(r[0] // 3600 + 72) % 168].add(number)
    wanted = [share for share, some in zip(hours, having, strict=True) if len(some) >= 5]
    np.testing.assert_allclose(values["hours"], wanted, atol=1e-12)
    ends = Counter(learner[-1][0] // 86400 for learner in rows)
    common = [ends[day] / 80 for day in sorted(ends) if ends[day] >= 5]
    np.testing.assert_allclose(values["leaves"], common, atol=1e-12)
    schools = Counter(row[0] for row in table_rows(log))
    np.testing.assert_allclose(values["cells"][:3], [schools[code] / 80 for code in range(3)])
    hints = Counter((r[3], r[1], r[2]) for learner in rows for r in learner)
    assert values["row cells"][0] == pytest.approx(hints[0, 0, 0] / log.n_rows)


def test_times_add_to_what_the_joint_attack_learns_from_refits():
    """Half of the rows of members, with their times and without."""
    log = replace(
        Classroom(n_learners=100, n_actions=8, timed=True).simulate(np.random.default_rng(6)), columns=()
    )
    found = []
    for told in (log, replace(log, time=None, term=None)):
        knowledge = Knowledge(told, 50)
        member = np.random.default_rng(0).permutation(100) < 50
        shadow = train_shadow_attack(knowledge, _half_of_rows, np.random.SeedSequence(1), n_shadows=12)
        released = _half_of_rows(told.select(member), np.random.default_rng(2))
        scores = shadow.scores(released, scores_without_refits(knowledge, released))
        found.append(auc_with_error(scores["joint-linear"], member)[0])
    assert found[0] > found[1]


def _half_of_rows(log, rng):
    return Drop(0.5).fit(log).sample(rng=rng)


def test_contributions_of_details_are_what_members_move(log):
    """Statistics with one entry of each learner are linear in the members; shares of rows are nearly."""
    statistics = Knowledge(log, 40).statistics
    kinds = statistics.kind // N_BANDS
    moved, predicted = [], []
    for seed in range(6):
        member = np.random.default_rng(seed).permutation(80) < 40
        moved.append(statistics.of(log.select(member)) - statistics.real)
        predicted.append(statistics.contributions.rmatvec(member - 0.5))
    for name in ("begins", "leaves", "sessions", "spans"):
        mine = kinds == KINDS.index(name)
        np.testing.assert_allclose(np.array(moved)[:, mine], np.array(predicted)[:, mine], atol=1e-12)
    for name in ("hours", "gaps", "days", "row cells"):
        mine = kinds == KINDS.index(name)
        seen = np.corrcoef(np.ravel(np.array(moved)[:, mine]), np.ravel(np.array(predicted)[:, mine]))[0, 1]
        assert seen > 0.85, name


def test_the_joint_attack_and_the_shadows_see_details(log):
    """Synthetic logs that share nothing with the population but times: only those can give members away."""
    member = np.arange(80) < 40
    knowledge = Knowledge(log, 40)
    told = log.select(member)
    blind = replace(told, action=np.zeros_like(told.action), outcome=np.zeros_like(told.outcome), columns=())
    bare = replace(blind, time=None, term=None)
    with_times, without = (
        auc_with_error(joint_linear_scores(k, s), member)[0]
        for k, s in (
            (Knowledge(replace(log, columns=()), 40), blind),
            (Knowledge(replace(log, columns=(), time=None, term=None), 40), bare),
        )
    )
    assert with_times > 0.8
    assert with_times > without + 0.1
    assert cheap_scores(knowledge, told).shape[1] == cheap_scores(knowledge, bare).shape[1] + 4
