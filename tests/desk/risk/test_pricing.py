"""From a request to its price: shadows through the analysis, answers kept, prices alone and together."""

from __future__ import annotations

import io
import json
import math

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtr, ndtri

from understudy.desk.domain.analysis import Analysis
from understudy.desk.domain.certificate import MEANING_OF_PRICE
from understudy.desk.domain.learners import learner_table
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.results import Results
from understudy.desk.risk import pricing
from understudy.desk.risk.game import N_STEPS, Price, most_mu, price
from understudy.desk.risk.pricing import (
    BESIDE,
    SAME,
    Prices,
    ShadowAnswers,
    bank_for,
    bank_name,
    price_of,
    reach,
    shadow_answers,
    with_private,
)
from understudy.desk.risk.released_summary import StageOne
from understudy.desk.risk.shadows import draw_shadows
from understudy.errors import DataError, MissingError, UsageError
from understudy.sandbox import Limits, Outcome, Sandbox, require_sandbox


class InThisProcess:
    """Runs the tests' own code without the sandbox, and remembers how many tables it held at once."""

    def __init__(self):
        self.batches = []

    def run_many(self, jobs, progress=None):
        self.batches.append(len(jobs))
        found = []
        for place, job in enumerate(jobs, 1):
            scope = {}
            exec(job.code, scope)  # noqa: S102
            try:
                frame = pl.read_ipc_stream(io.BytesIO(job.tables["data"]))
                found.append(Outcome("done", scope[job.entry](frame)))
            except ValueError:
                found.append(Outcome("error", error_type="ValueError", error_line=2))
            if progress is not None:
                progress(place, len(jobs))
        return found


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    n = 30
    frame = pl.DataFrame(
        {
            "learner": [f"simulated-{place}" for place in range(n) for _ in range(2)],
            "minutes": rng.gamma(2.0, 20.0, 2 * n).round(1),
        }
    )
    return learner_table(frame, np.random.default_rng(2))


MEAN = Analysis("def analyze(data):\n    return {'mean': float(data['minutes'].mean())}\n")


def test_the_same_seed_and_learners_give_the_same_bank(table):
    assert (bank_for(table, 5, 40).counts == bank_for(table, 5, 40).counts).all()
    assert bank_name(bank_for(table, 5, 40)) != bank_name(bank_for(table, 6, 40))
    changed = learner_table(
        table.rows.with_columns(
            pl.col("minutes") + 1, learner=pl.Series([str(n) for n in range(30) for _ in range(2)])
        ),
        np.random.default_rng(2),
    )
    assert bank_name(bank_for(table, 5, 40)) != bank_name(bank_for(changed, 5, 40))


def test_answers_are_those_of_the_shadows_in_order_and_rounded(table, monkeypatch):
    monkeypatch.setattr(pricing, "CHUNK", 16)
    bank, runs, heard = bank_for(table, 1, 50), InThisProcess(), []
    found = shadow_answers(
        MEAN,
        table,
        bank,
        Results({"mean": 1.0, "gone": 2.0}),
        {"mean": 0.5},
        runs,
        lambda done, total: heard.append((done, total)),
    )
    minutes = table.rows["minutes"].to_numpy().reshape(-1, 2).mean(axis=1)
    expected = np.round(bank.counts @ minutes / bank.n_learners / 0.5) * 0.5
    assert found.values[:, 0] == pytest.approx(expected)
    assert np.isnan(found.values[:, 1]).all()
    assert found.names == ("mean", "gone")
    assert runs.batches == [16, 16, 16, 2]
    assert heard == [(place, 50) for place in range(1, 51)]


def test_large_tables_are_held_a_few_at_a_time(table, monkeypatch):
    monkeypatch.setattr(pricing, "CHUNK_BYTES", 1)
    runs = InThisProcess()
    shadow_answers(MEAN, table, bank_for(table, 1, 20), Results({"mean": 1.0}), {}, runs)
    assert runs.batches == [pricing.LEAST_CHUNK] * 2 + [4]


def test_runs_that_fail_and_numbers_that_only_shadows_give(table):
    bank = bank_for(table, 1, 40)
    limit = float(np.median(bank.counts @ table.rows["minutes"].to_numpy().reshape(-1, 2).sum(axis=1)))
    code = f"""
def analyze(data):
    total = float(data["minutes"].sum())
    if total > {limit}:
        raise ValueError(total)
    return {{"total": total, "group": {{str(n): 1 for n in range(int(total) % 3)}}}}
"""
    found = shadow_answers(
        Analysis(code), table, bank, Results({"total": 1.0, "group": {}}), {}, InThisProcess()
    )
    failed = np.isnan(found.values[:, 0])
    assert 15 <= failed.sum() <= 25
    assert found.names == ("total", SAME + "group", BESIDE)
    assert (found.values[~failed, 2] == found.values[~failed, 0].astype(int) % 3).all()


def test_texts_rows_and_keys_that_depend_on_who_is_in_are_columns(table):
    """The answer's texts are priced: a column says on which shadows they are the same."""
    bank = bank_for(table, 1, 60)
    code = """
def analyze(data):
    one = "yes" if (data["minutes"] == MOST).any() else "no"
    return {"fixed": "text", "one": one, "m": 1.0, **({"here": 2.0} if one == "yes" else {})}
"""
    analysis = Analysis(f"MOST = {table.rows['minutes'].max()!r}\n{code}")
    answer = analysis.answer(InThisProcess(), table.whole())
    found = shadow_answers(analysis, table, bank, answer, {}, InThisProcess())
    inside = np.array([(bank.counts[:, learner] > 0) for learner in range(bank.n_learners)])
    assert found.names == ("m", "here", SAME + "one")
    assert (inside == (found.values[:, 2] == 1)).all(axis=1).sum() == 1
    assert ((found.values[:, 2] == 1) == ~np.isnan(found.values[:, 1])).all()
    assert price(found.values, bank, np.random.default_rng(1)).advantage.value > 0.9


def test_whoever_cancels_is_heard_soon(table):
    class CancelledError(Exception):
        pass

    def progress(done, total):
        if done == 3:
            raise CancelledError

    runs = InThisProcess()
    with pytest.raises(CancelledError):
        shadow_answers(MEAN, table, bank_for(table, 1, 40), Results({"mean": 1.0}), {}, runs, progress)
    assert len(runs.batches) == 1
    bank = draw_shadows(10, np.random.default_rng(1), 200)
    with pytest.raises(CancelledError):
        price(np.ones((200, 1)), bank, np.random.default_rng(1), progress=progress)


def test_answers_survive_the_store():
    answers = ShadowAnswers(("a / b", "ü"), np.array([[1.5, math.nan], [-2.0, 1e300]]), "x" * 32)
    again = ShadowAnswers.from_bytes(answers.to_bytes())
    assert (again.names, again.bank) == (answers.names, answers.bank)
    np.testing.assert_array_equal(again.values, answers.values)
    with pytest.raises(DataError):
        ShadowAnswers.from_bytes(answers.to_bytes()[:40])
    with pytest.raises(UsageError):
        ShadowAnswers(("a",), np.ones((3, 2)))


@pytest.fixture(scope="module")
def bank():
    return draw_shadows(20, np.random.default_rng(1), 600)


@pytest.fixture(scope="module")
def sums(bank):
    values = np.random.default_rng(2).normal(size=(20, 3)) + 6 * (np.arange(20) == 4)[:, None]
    return bank.counts @ values


def answers_of(bank, values):
    return ShadowAnswers(tuple(map(str, range(values.shape[1]))), values, bank_name(bank))


def test_prices_are_the_same_for_the_same_generator_and_survive_the_store(bank, sums):
    new, before = answers_of(bank, sums[:, :1]), answers_of(bank, sums[:, 1:])
    stage_one = StageOne(np.linspace(-0.3, 0.3, 20)[:, None], 0.6)
    heard = []
    first, second = (
        price_of(new, [before], bank, np.random.default_rng(3), stage_one, lambda *step: heard.append(step))
        for _ in range(2)
    )
    assert first == second
    assert Prices.from_json(json.loads(json.dumps(first.to_json()))) == first
    assert heard[: len(heard) // 2][-1] == (2 * N_STEPS, 2 * N_STEPS)
    assert [done for done, _ in heard] == sorted(done for done, _ in heard[: len(heard) // 2]) * 2
    assert first.together.mu.value >= first.own.mu.value
    assert first.together.advantage.value >= first.own.advantage.value
    assert (first.own.n_outputs, first.together.n_outputs) == (1, 3)
    assert set(first.own.attacks) == {"independent", "correlated", "linear"}
    assert first.published.label == "published, not a bound"
    assert first.published.stage_one_mu == 0.6
    assert first.published.corollary_mu > first.published.stage_one_mu
    assert "not a guarantee" in MEANING_OF_PRICE


def test_the_first_request_without_stage_one_costs_what_it_costs_alone(bank, sums):
    found = price_of(answers_of(bank, sums), [], bank, np.random.default_rng(4))
    assert found.together == found.own
    assert found.published.stage_one_mu is None


def test_private_answers_are_composed_with_what_is_measured(bank, sums):
    """Two Gaussians: mus are those of both together, and the advantage is not less than that of both."""
    answers, seed = answers_of(bank, sums), 4
    alone = price_of(answers, [], bank, np.random.default_rng(seed))
    found = price_of(answers, [], bank, np.random.default_rng(seed), private_mu=0.7)
    assert found.own == alone.own
    assert found.published.private_mu == 0.7
    for end in ("value", "low", "high"):
        mu, advantage = getattr(alone.together.mu, end), getattr(alone.together.advantage, end)
        assert getattr(found.together.mu, end) == pytest.approx(math.hypot(mu, 0.7))
        both = 2 * ndtr(math.hypot(2 * ndtri((1 + advantage) / 2), 0.7) / 2) - 1
        assert both <= getattr(found.together.advantage, end) <= 1
    # Counted when it is released, not twice.
    later = with_private(found, 0.7)
    assert later == found
    more = with_private(found, 1.1)
    assert more.together.mu.value == pytest.approx(math.hypot(alone.together.mu.value, 1.1))
    assert Prices.from_json(more.to_json()).published.private_mu == 1.1


def test_the_price_of_everything_does_not_fall(bank, sums):
    dear = price_of(answers_of(bank, sums), [], bank, np.random.default_rng(4)).together
    noise = np.random.default_rng(5).normal(size=(600, 2))
    found = price_of(answers_of(bank, noise), [], bank, np.random.default_rng(6), before=dear)
    assert found.own.mu.high < dear.mu.value
    assert found.together.mu == dear.mu
    assert (found.together.attacker, found.together.n_outputs) == (dear.attacker, 2)


def test_answers_on_other_shadows_are_not_priced_together(bank, sums):
    other = draw_shadows(20, np.random.default_rng(9), 600)
    with pytest.raises(UsageError):
        price_of(answers_of(bank, sums), [answers_of(other, sums)], bank, np.random.default_rng(5))
    with pytest.raises(UsageError):
        StageOne(np.ones((19, 1)), 1.0).on(bank, np.random.default_rng(5))


def test_the_curve_of_the_worst_learner(bank, sums):
    found = price(sums, bank, np.random.default_rng(6))
    assert len(found.misses) == 21
    assert list(found.misses) == sorted(found.misses, reverse=True)
    assert found.misses[-1] == 0.0
    assert found.misses[5] < 0.75  # at 25 % false positives guessing has 75 % false negatives
    assert isinstance(Price.from_json(json.loads(json.dumps(found.to_json()))).misses, tuple)


def figures(found):
    return {name: (one.mu.value, one.advantage.value) for name, one in found.attacks.items()}


def test_neither_the_order_of_numbers_nor_their_units_nor_a_constant_changes_a_price(bank, sums):
    plain = figures(price(sums, bank, np.random.default_rng(7)))
    turned = figures(price(sums[:, ::-1] * [1e3, -1.0, 1e-6] + 5.0, bank, np.random.default_rng(7)))
    beside = figures(price(np.column_stack([np.full(600, 3.0), sums]), bank, np.random.default_rng(7)))
    for name, (mu, advantage) in plain.items():
        assert turned[name] == pytest.approx((mu, advantage), abs=0.02)
        assert beside[name] == pytest.approx((mu, advantage), abs=1e-9)


def test_enormous_values_do_not_hide_what_the_others_say(bank, sums):
    plain = price(sums[:, :1], bank, np.random.default_rng(7))
    hidden = sums[:, :1].copy()
    hidden[[11, 12, 30, 90]] = [[-1e308], [1e308], [1e308], [3e9]]
    found = price(hidden, bank, np.random.default_rng(7))
    assert plain.mu.value > 0.8
    assert found.mu.value == pytest.approx(plain.mu.value, abs=0.15)


def test_a_limit_that_shadows_cannot_reach_is_said():
    """Somebody who is given away for certain: mu ends where so many shadows end."""
    for n_shadows in (200, 1000):
        bank = draw_shadows(20, np.random.default_rng(3), n_shadows)
        found = price((bank.counts[:, :1] > 0).astype(float), bank, np.random.default_rng(4))
        assert found.mu.value == pytest.approx(most_mu(n_shadows), abs=0.15)
        most = most_mu(n_shadows)
        assert reach(Policy(n_shadows=n_shadows, mu_limit=most - 0.01)) == ()
        assert [one.verdict for one in reach(Policy(n_shadows=n_shadows, mu_limit=most + 0.01))] == ["review"]
        assert found.mu.high == max(one.mu.high for one in found.attacks.values())
        assert found.advantage.high == max(one.advantage.high for one in found.attacks.values())


def test_more_shadows_make_a_narrower_interval():
    rng = np.random.default_rng(8)
    values = np.append(rng.normal(size=19), 4.0)
    widths = []
    for n_shadows in (300, 2700):
        bank = draw_shadows(20, rng, n_shadows)
        mu = price((bank.counts @ values)[:, None], bank, rng).mu
        widths.append(mu.high - mu.low)
    # A third, but for chance.
    assert widths[1] < 0.5 * widths[0]


@pytest.mark.sandbox
def test_through_the_sandbox(table):
    try:
        require_sandbox()
    except MissingError as error:
        pytest.skip(error.message)
    code = "def analyze(data):\n    return data.groupby('learner')['minutes'].mean().agg(['mean', 'std']).to_dict()\n"
    bank = bank_for(table, 1, 30)
    with Sandbox(Limits(wall_seconds=60.0), workers=2) as sandbox:
        found = shadow_answers(
            Analysis(code), table, bank, Results({"mean": 1.0, "std": 1.0}), {"std": 0.01}, sandbox
        )
    minutes = table.rows["minutes"].to_numpy().reshape(-1, 2).mean(axis=1)
    assert found.values[:, 0] == pytest.approx(bank.counts @ minutes / 30)
    expected = [np.std(minutes[bank.learners(shadow)], ddof=1) for shadow in range(30)]
    assert found.values[:, 1] == pytest.approx(np.round(expected, 2), abs=0.0101)
