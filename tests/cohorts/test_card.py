"""Every figure on the card of a synthetic cohort, computed again; no figure on it is measured on real learners."""

import numpy as np
import pytest
from scipy.stats import norm

import understudy
from tests.cohorts.support.cycles import summary_of
from tests.support.figures import numbers, unexplained
from understudy.cohorts.card import cohort_card, cohort_card_page, expected_errors
from understudy.cohorts.simulate import School
from understudy.cohorts.summary.budget import propose
from understudy.cohorts.summary.mechanism import noisy_summary
from understudy.cohorts.summary.summary_file import zero_shares
from understudy.core.pages.words import in_100
from understudy.core.privacy.noise import seeded_noise

EPSILON, DELTA, N = 3.0, 1e-3, 120


@pytest.fixture(scope="module")
def made():
    """A summary, and a cohort of another size in place of a synthetic one."""
    return summary_of(0, 7, EPSILON), School(n_learners=80).simulate(1, np.random.default_rng(3))


def half_of_label_noise(summary):
    """By the plan, which knows the noise before anything is measured."""
    plan = propose(summary.schema, N, EPSILON, DELTA)
    (labels,) = [found for found in plan.predictions() if found.statistic == "labels"]
    return 1.96 * labels.noise_sd / N


def half_of_size(cohort, place):
    """Half of an interval of the share of weeks at 0, for the label whose learners differ most."""
    halves = []
    for label in set(cohort.label.tolist()):
        shares = [float((week == 0).mean()) for week in cohort.values[cohort.label == label, place]]
        if len(shares) > 1:
            mean = sum(shares) / len(shares)
            variance = sum((share - mean) ** 2 for share in shares) / (len(shares) - 1)
            halves.append(1.96 * (variance / len(shares)) ** 0.5)
    return max(halves)


def test_every_figure_on_the_card_is_computed_again(made):
    summary, cohort = made
    schema, plan = summary.schema, propose(summary.schema, N, EPSILON, DELTA)
    # The card is that of noise from the operating system: the claim of the plan.
    card = cohort_card(
        *(summary, cohort),
        authors=["offline"],
        files=["s.parquet"],
        made="today",
        version="x",
        guarantee=plan.guarantee,
    )
    mu = np.sqrt(2 * plan.rho)
    auc, found, guessed, singled = (
        float(np.ceil(100 * share) / 100)
        for share in (
            norm.cdf(mu / np.sqrt(2)) + DELTA,
            *(norm.cdf(norm.ppf(alpha) + mu) + DELTA for alpha in (0.01, 0.5, 0.001)),
        )
    )
    largest = max(float(np.mean(cohort.label == code)) for code in range(schema.n_labels))
    idle = zero_shares(summary)[1]
    rows = cohort.to_polars().select(["learner", *schema.columns()[:: schema.n_weeks], schema.label]).head(6)
    expected = {
        "A synthetic cohort of": [80, N],
        "learners here": [80],
        "features": [schema.n_features],
        "weeks": [schema.n_weeks],
        "Formal guarantee": [3, "1.00e-03"],
        "Epsilon 3 is": [3, "1.00e-03", 1, 1000],
        "Distinguished": [*numbers(in_100(auc)), 50, 100],
        "Found": [100, *numbers(in_100(found)), 100],
        "Guessed": [*numbers(in_100(guessed)), 50, 100],
        "Singled out": [1000, *numbers(in_100(singled)), 1000],
        "Predicted, and not measured": [95, 100],
        f"Share of one value of {schema.label}": [
            round(100 * half_of_label_noise(summary), 1),
            round(100 * 1.96 * np.sqrt(largest * (1 - largest) / 80), 1),
        ],
        **{
            f"{feature.name[:1].upper()}{feature.name[1:]}: share of weeks at 0": [
                *numbers(feature.name),
                0,
                round(100 * 1.96 * float(idle[:, place].max()), 1),
                round(100 * half_of_size(cohort, place), 1),
            ]
            for place, feature in enumerate(schema.features)
        },
        **{line["column"]: numbers(" ".join(line.values())) for line in card["columns"]},
        "Guarantee Epsilon": [3, "1.00e-03"],
        **{" ".join(map(str, row)): numbers(" ".join(map(str, row))) for row in rows.iter_rows()},
        " ".join(rows.columns): numbers(" ".join(rows.columns)),
    }
    assert unexplained(cohort_card_page(card), expected, ("7-0", understudy.__version__)) == []


def test_the_noise_that_the_card_states_is_that_of_the_summary(made):
    """The share of a label in many noisy summaries of the same cohort lies within the stated half 95 times in 100."""
    summary, cohort = made
    real = School(n_learners=N).simulate(0, np.random.default_rng([7, 0]))
    share = float(np.mean(real.label == 0))
    half = expected_errors(summary, cohort)[0]["noise"]
    inside = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        noisy = noisy_summary(real, propose(real.schema, N, EPSILON, DELTA), seeded_noise(rng))
        inside += abs(noisy.statistics["labels"].values[0] / N - share) <= half
    # At 95 %, fewer than 88 have a chance of 0.2 %.
    assert inside >= 88
