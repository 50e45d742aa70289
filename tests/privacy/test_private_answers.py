"""Private answers: sensitivities by brute force, transcripts of neighbours, and what must not depend on the data.

See `support/transcripts.py` for what all draws together cost.
"""

import itertools
import math

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

from tests.desk.support.private_tables import SCHEMA, SCHOOLS, analyze, table
from tests.privacy.support.transcripts import costs, total, transcripts
from understudy.core.privacy.composition import mu_to_delta
from understudy.core.privacy.noise import seeded_noise
from understudy.desk import private
from understudy.desk.private.measurements import ROOT_STEPS, STEPS, Features, Slopes, chances, lattice
from understudy.desk.private.mechanism import answer_privately
from understudy.desk.private.questions import Linear, Logistic, Mean

EPSILON, DELTA = 1.0, 1e-6
REST = table(40, seed=2)
QUESTIONS = private.questions_of(analyze)


def extreme_learners(rng, n_random=30):
    """Learners as far from each other as the bounds allow, and beyond them; without values, with unknown ones."""
    found = [
        dict(zip(("minutes", "grade", "hours", "school", "passed"), cells, strict=True))
        for cells in itertools.product((0.0, 600.0), (0.0, 100.0), (-5.0, 5.0), SCHOOLS, (True, False))
    ]
    found += [
        {"minutes": 1e12, "grade": -1e12, "hours": 1e12, "school": "nowhere", "passed": None},
        {"minutes": -1e12, "grade": 1e12, "hours": -1e12, "school": "west", "passed": True},
        {"minutes": math.inf, "grade": -math.inf, "hours": math.inf, "school": "south", "passed": False},
        dict.fromkeys(("minutes", "grade", "hours", "school", "passed")),
        {"minutes": math.nan, "grade": math.nan, "hours": math.nan, "school": "", "passed": None},
    ]
    for _ in range(n_random):
        found.append(
            {
                "minutes": 600 * rng.random(),
                "grade": 100 * rng.random(),
                "hours": rng.choice([None, rng.uniform(-5, 5)]),
                "school": str(rng.choice([*SCHOOLS, "other"])),
                "passed": bool(rng.integers(2)),
            }
        )
    return found


def with_last(learner):
    row = pl.DataFrame({"learner": ["the last"], **{name: [cell] for name, cell in learner.items()}})
    return pl.concat([REST, row.select(REST.columns).cast(REST.schema)])


TABLES = [with_last(learner) for learner in extreme_learners(np.random.default_rng(7))]


def released(plan):
    def release(rows, noise):
        return answer_privately(plan, private.read_records(rows, SCHEMA), noise)

    return release


def plan_of(*questions, n=REST.height + 1):
    return private.propose(questions, SCHEMA, n, EPSILON, DELTA)


def worst(plan, tables=TABLES, **settings):
    """The most that all draws together cost on any two of the tables; answers are the same on all of them."""
    found = transcripts(released(plan), tables, **settings)
    return max(total(costs(one, other)).rho for one, other in itertools.combinations(found, 2))


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_no_neighbour_costs_more_than_the_claim(question):
    plan = plan_of(question)
    spent = worst(plan)
    assert spent <= plan.rho * (1 + 1e-9)
    # Nor is the bound far from what happens: noise that is much too large would hide a mistake. Gradients of a
    # logistic regression cannot all be as far apart as its bound allows for.
    assert spent > (0.6 if isinstance(question, Logistic) else 0.95) * plan.rho


def test_all_questions_together_stay_within_the_claim():
    plan = plan_of(*QUESTIONS)
    spent = worst(plan, TABLES[::6] + TABLES[47:53])
    assert 0.8 * plan.rho < spent <= plan.rho * (1 + 1e-9)
    assert math.fsum(plan.rho_for(need) for need in plan.measurements) <= plan.rho
    # And the rho is worth what is claimed, by the analytic formula for Gaussians.
    assert mu_to_delta(math.sqrt(2 * plan.rho), EPSILON) <= DELTA
    assert (plan.guarantee.epsilon, plan.guarantee.delta) == (EPSILON, DELTA)


def largest_move(sums):
    """The largest distance between the sums of two of the tables, in lattice steps."""
    flat = np.array([one.values.ravel() for one in sums], dtype=np.float64)
    return max(float(np.linalg.norm(one - other)) for one, other in itertools.combinations(flat, 2))


@pytest.mark.parametrize(
    "coefficients",
    [
        [0.0, 0.0, 0.0, 0.0],
        [0.5, -2.0, 1.0, 0.0],
        [0.0, 2.0, 0.0, 0.0],
        [-9.0, 1.0, 0.5, 0.0],
        [3.0, 9.0, -9.0, 4.0],
    ],
)
def test_no_neighbour_moves_slopes_by_more_than_their_sensitivity(coefficients):
    slopes = plan_of(Logistic("passed", ("minutes", "school"))).needs[0]
    for measure in (slopes.gradient, slopes.curvature):
        sums = [measure(private.read_records(rows, SCHEMA), np.array(coefficients)) for rows in TABLES]
        assert len({(one.sensitivity, one.step) for one in sums}) == 1
        assert largest_move(sums) <= sums[0].sensitivity
        if not any(coefficients):
            assert largest_move(sums) > 0.8 * sums[0].sensitivity


def test_the_diameter_of_gradients_holds_for_learners_anywhere_between_the_bounds():
    """Ten thousand random pairs at each of 40 random coefficients, and the ends of a curve that the proof bounds."""
    rng = np.random.default_rng(6)
    for _ in range(40):
        n_numbers = int(rng.integers(1, 4))
        slopes = Slopes("passed", "yes", Features(tuple("abc"[:n_numbers])))
        b = rng.normal(size=1 + n_numbers) * 10.0 ** rng.uniform(-1, 1)
        u = np.concatenate(
            [rng.uniform(-1, 1, (5000, n_numbers)), rng.choice([-1.0, 1.0], (5000, n_numbers))]
        )
        # Learners along the coefficients, from one end to the other.
        u = np.concatenate([u, np.linspace(-1, 1, 1000)[:, None] * np.sign(b[1:])])
        x = np.concatenate([np.ones((len(u), 1)), u], axis=1)
        gradients = ((rng.random(len(x)) < 0.5) - expit(x @ b))[:, None] * x
        one, other = rng.permutation(gradients), rng.permutation(gradients)
        worst_of_them = np.linalg.norm(one - other, axis=1).max()
        assert worst_of_them <= slopes.gradient_diameter(b)


def test_a_learners_chance_depends_on_their_row_alone():
    """To the last bit, wherever the row stands: 100,003 equal rows of 12 features, and others in another order."""
    rng = np.random.default_rng(1)
    x, coefficients = rng.uniform(-1, 1, (100_003, 12)), rng.normal(size=12)
    assert len(np.unique(chances(np.repeat(x[:1], len(x), axis=0), coefficients))) == 1
    order = rng.permutation(len(x))
    assert (chances(x[order], coefficients) == chances(x, coefficients)[order]).all()


@pytest.mark.parametrize("steps", [STEPS, ROOT_STEPS])
def test_the_bound_holds_for_any_vectors_not_only_for_those_of_learners(steps):
    """The proof does not need to know what a learner can have: it rests on the cut alone."""
    rng = np.random.default_rng(8)
    vectors = rng.normal(size=(300, 5)) * 10.0 ** rng.uniform(-6, 6, (300, 1))
    lengths = np.linalg.norm(lattice(vectors, 0.7, steps).astype(np.float64), axis=1)
    assert 0.99 * steps < lengths.max() <= steps


def test_every_measurement_has_a_draw_of_its_own():
    plan = plan_of(*QUESTIONS)
    (draws,) = transcripts(released(plan), TABLES[:1])
    n_rounds = sum(6 if isinstance(question, Logistic) else 0 for question in plan.questions)
    n_logistic = sum(isinstance(question, Logistic) for question in plan.questions)
    assert len(draws) == len(plan.measurements) - n_logistic + n_rounds
    noises = [tuple((draw.answer - draw.values).ravel()[:4]) for draw in draws]
    assert len(set(noises)) == len(noises)


def test_a_plan_knows_nothing_of_the_data():
    """Shares, sums and predictions are equal for any two tables of one size, since no table is given."""
    found = [
        private.try_out(analyze, rows, SCHEMA, EPSILON, delta=DELTA).plan for rows in (TABLES[0], TABLES[-1])
    ]
    assert found[0] == found[1]
    assert found[0].shares == found[1].shares == plan_of(*QUESTIONS).shares


@pytest.mark.parametrize(
    ("question", "public"),
    [(Mean("grade"), True), (Mean("hours"), False), (Mean("grade", by="school"), False)],
)
def test_numbers_of_learners_are_noisy_unless_they_are_public(question, public):
    """A mean of a complete column knows its n. Of any other, and of groups, the noise is on n as well."""
    plan = plan_of(question)
    need = plan.needs[0]
    noisy = need.released(np.zeros(need.shape(SCHEMA)), SCHEMA, plan.n_learners, plan.rho_for(need))
    assert ((noisy.sd[:, 0, 0] == 0) == public).all()
    assert ((noisy.values[:, 0, 0] == plan.n_learners) == public).all()


def test_the_noise_has_the_scale_that_stands_beside_the_values():
    """400 draws; a false alarm at five standard errors: 6e-7 for each of some 40 figures."""
    plan = plan_of(
        Mean("grade"), *[question for question in QUESTIONS if question.ask in ("count", "histogram")]
    )
    rng = np.random.default_rng(3)
    rows = table(20_000, seed=1)
    counted = [question for question in QUESTIONS if question.ask in ("count", "histogram")]
    plan = plan_of(Mean("grade"), *counted, n=20_000)
    records = private.read_records(rows, SCHEMA)
    found = [answer_privately(plan, records, seeded_noise(rng)) for _ in range(400)]
    for place in range(len(plan.questions)):
        values = np.array([[e.value for e in answers[place].estimates] for answers in found])
        noise = np.array([e.noise for e in found[0][place].estimates])
        # Cells without learners are cut at 0, so they have half the noise.
        inner = values.mean(axis=0) > 10 * noise
        assert inner.any()
        off = values.std(axis=0)[inner] / noise[inner] - 1
        assert np.abs(off).max() < 5 / math.sqrt(2 * 400) + 0.02


def test_planted_mistakes_are_seen():
    """Half the noise costs four times the claim."""
    plan = plan_of(Linear("grade", ("minutes", "school")))
    assert worst(plan, factor=0.5) > 3 * plan.rho
