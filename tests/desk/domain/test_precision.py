"""What the desk counts as a finding, and when it holds."""

import pytest

from understudy.desk.domain.precision import Precision, precision_of
from understudy.desk.domain.results import Results, Table


def table(*rows):
    return Results({}, {"t": Table(("window", "rho", "p"), rows)})


@pytest.mark.parametrize(
    ("real", "held"),
    [
        (("evening", 0.4, 0.01), 1),
        (("evening", -0.4, 0.01), 0),
        (("evening", 0.4, 0.06), 0),
        (("evening", None, None), 0),
        (("morning", 0.4, 0.01), 0),
    ],
)
def test_a_significant_finding_holds_with_the_same_sign_and_significance(real, held):
    assert precision_of(table(("evening", 0.5, 0.04)), table(real), {}) == Precision(1, held)


def test_what_is_not_significant_on_synthetic_data_claims_nothing():
    found = precision_of(table(("evening", 0.5, 0.2)), table(("evening", 0.5, 0.001)), {})
    assert found == Precision(0, 0)
    assert found.score is None


def test_in_a_dict_the_p_belongs_to_the_numbers_of_the_same_dict():
    synthetic = Results({"F": 5.0, "high minus low": {"effect": 0.3, "p": 0.01}})
    turned = Results({"F": -5.0, "high minus low": {"effect": 0.1, "p": 0.03}})
    assert precision_of(synthetic, turned, {}) == Precision(1, 1)
    assert precision_of(synthetic, Results({"high minus low": {"effect": -0.1, "p": 0.03}}), {}).n_held == 0


def test_without_p_values_a_number_holds_near_the_real_one():
    synthetic = Results({"a": 1.0, "b": 1.0, "absent": 0.0, "c": 0.1, "constant": 17})
    real = Results({"a": 1.27, "b": 1.29, "absent": 0.4, "c": -0.1, "constant": 17})
    # 1.96 times the square root of 2 times 0.1 is 0.277.
    errors = {"a": 0.1, "b": 0.1, "absent": 0.1, "c": 0.1, "constant": 0.0}
    assert precision_of(synthetic, real, errors) == Precision(3, 1)


@pytest.mark.parametrize(("held", "score"), [(0, 0.0), (1, 0.5), (2, 0.5), (3, 1.0), (4, 1.0)])
def test_the_scale_of_three_steps(held, score):
    assert Precision(4, held).score == score
