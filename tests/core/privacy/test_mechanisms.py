"""Mechanisms and their noise: contracts, exactness of the integer draws, and no seed for the real noise."""

import math
import multiprocessing
import random
import subprocess
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from understudy.core.privacy import mechanisms, noise
from understudy.core.privacy.noise import os_noise, seeded_noise


def both_noises():
    return [
        pytest.param(os_noise(), id="os"),
        pytest.param(seeded_noise(np.random.default_rng(1)), id="seeded"),
    ]


def draw(source):
    """A draw from each mechanism, with so much noise that two equal ones are no coincidence (below 1e-60)."""
    zeros = np.zeros(20, dtype=np.int64)
    return (
        mechanisms.gaussian(zeros, sensitivity=1e6, rho=0.1, noise=source),
        mechanisms.laplace(zeros, sensitivity=1e6, epsilon=0.1, noise=source),
        mechanisms.knorm_cube(zeros, epsilon=0.001, noise=source),
        mechanisms.knorm_hexagon(zeros.reshape(10, 2), epsilon=0.001, noise=source),
        np.array([mechanisms.exponential(zeros, sensitivity=1, epsilon=1, noise=source) for _ in range(60)]),
    )


def test_sigma_is_the_formula_rounded_up():
    sigma = mechanisms.gaussian_sigma(3.0, 0.5)
    assert 3.0 < sigma < 3.0 * (1 + 1e-11)


@pytest.mark.parametrize("sensitivity", [1.0, math.sqrt(2), 2e3, 1e6])
@pytest.mark.parametrize("rho", [1e-4, 0.024, 1.05])
def test_opendp_proves_the_rho_that_the_mechanism_states(sensitivity, rho):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    measurement = dp.m.make_gaussian(*space, scale=mechanisms.gaussian_sigma(sensitivity, rho))
    assert measurement.output_measure == dp.zero_concentrated_divergence()
    assert measurement.map(sensitivity) <= rho
    assert measurement.map(sensitivity) == pytest.approx(rho, rel=1e-10)


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1.0, 1.0), (40.0, 0.3), (1e6, 8.0)])
def test_opendp_proves_the_epsilon_that_the_mechanism_states(sensitivity, epsilon):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="f64")
    measurement = dp.m.make_laplace(*space, scale=sensitivity / epsilon * (1 + 1e-12))
    assert measurement.map(sensitivity) <= epsilon
    assert measurement.map(sensitivity) == pytest.approx(epsilon, rel=1e-10)


def test_a_loss_that_opendp_states_differently_stops_the_release():
    with pytest.raises(AssertionError, match="OpenDP states"):
        noise.confirm(0.5001, 0.5)


@pytest.mark.parametrize("source", both_noises())
def test_shapes_and_types_stay(source):
    for shape in ((0,), (7,), (3, 4), (2, 3, 4)):
        values = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
        for result in (
            mechanisms.gaussian(values, sensitivity=1, rho=1, noise=source),
            mechanisms.laplace(values, sensitivity=1, epsilon=1, noise=source),
        ):
            assert (result.shape, result.dtype) == (shape, np.int64)
    result = mechanisms.knorm_cube(np.arange(5), epsilon=1, noise=source)
    assert (result.shape, result.dtype) == ((5,), np.int64)
    result = mechanisms.knorm_hexagon(np.arange(10).reshape(5, 2), epsilon=1, noise=source)
    assert (result.shape, result.dtype) == ((5, 2), np.int64)


@pytest.mark.parametrize("source", both_noises())
def test_noise_is_added_to_the_values(source):
    values = np.array([-(10**12), 0, 10**12])
    for result in (
        mechanisms.gaussian(values, sensitivity=1, rho=0.5, noise=source),
        mechanisms.laplace(values, sensitivity=1, epsilon=1, noise=source),
        mechanisms.knorm_cube(values, epsilon=1, noise=source),
    ):
        assert (np.abs(result - values) < 200).all()  # false alarm below 1e-80
    pairs = np.array([[-(10**12), 0], [10**12, 10**15]])
    assert (np.abs(mechanisms.knorm_hexagon(pairs, epsilon=1, noise=source) - pairs) < 250).all()
    assert mechanisms.exponential(np.array([0, 500, 0]), sensitivity=1, epsilon=1, noise=source) == 1


def test_values_are_not_changed_in_place():
    values = np.zeros(4, dtype=np.int64)
    draw_from = seeded_noise(np.random.default_rng(0))
    mechanisms.gaussian(values, sensitivity=100, rho=0.1, noise=draw_from)
    mechanisms.knorm_cube(values, epsilon=0.1, noise=draw_from)
    mechanisms.knorm_hexagon(values.reshape(2, 2), epsilon=0.1, noise=draw_from)
    assert not values.any()


def test_more_cells_than_a_chunk_come_back_in_order(monkeypatch):
    monkeypatch.setattr(noise, "_CHUNK", 7)
    values = np.arange(100).reshape(4, 25) * 10**9
    result = mechanisms.gaussian(values, sensitivity=1, rho=0.5, noise=os_noise())
    assert (np.abs(result - values) < 1000).all()
    assert len(np.unique(result - values)) > 1


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_parameters_that_guarantee_nothing_are_refused(bad):
    source, zeros = os_noise(), np.zeros(3, dtype=np.int64)
    with pytest.raises(ValueError, match="above 0"):
        mechanisms.gaussian(zeros, sensitivity=bad, rho=1, noise=source)
    with pytest.raises(ValueError, match="above 0"):
        mechanisms.gaussian(zeros, sensitivity=1, rho=bad, noise=source)
    with pytest.raises(ValueError, match="above 0"):
        mechanisms.laplace(zeros, sensitivity=1, epsilon=bad, noise=source)
    with pytest.raises(ValueError, match="above 0"):
        mechanisms.knorm_cube(zeros, epsilon=bad, noise=source)
    with pytest.raises(ValueError, match="above 0"):
        mechanisms.knorm_hexagon(zeros[:2, None] + zeros[:2], epsilon=bad, noise=source)
    with pytest.raises(ValueError, match="above 0"):
        mechanisms.exponential(zeros, sensitivity=bad, epsilon=1, noise=source)


def test_real_numbers_are_refused_and_not_rounded():
    with pytest.raises(ValueError, match="integers, not float64"):
        mechanisms.gaussian(np.zeros(3), sensitivity=1, rho=1, noise=os_noise())


@pytest.mark.parametrize("scores", [[], [[1.0]], [math.nan], [math.inf, 0.0]])
def test_scores_that_are_none(scores):
    with pytest.raises(ValueError, match="finite scores"):
        mechanisms.exponential(np.array(scores), sensitivity=1, epsilon=1, noise=os_noise())


def test_seeded_noise_is_reproducible_and_says_so():
    one, same, other = (draw(seeded_noise(np.random.default_rng(seed))) for seed in (5, 5, 6))
    assert all((a == b).all() for a, b in zip(one, same, strict=True))
    assert all((a != b).any() for a, b in zip(one, other, strict=True))
    assert seeded_noise(np.random.default_rng(5)).secret is False
    assert os_noise().secret is True


def test_two_draws_of_the_real_noise_differ():
    source = os_noise()
    one, two, three = draw(source), draw(source), draw(os_noise())
    assert all((a != b).any() for a, b in zip(one, two, strict=True))
    assert all((a != b).any() for a, b in zip(one, three, strict=True))
    assert not vars(source)  # nothing stored that could draw the noise again


def test_no_part_of_the_real_noise_is_used_twice(monkeypatch):
    """Cells that are drawn in several parts: no value comes twice, and no part looks like another.

    False alarms: below 1e-8 that two of 2,000 draws of this size are equal, and for the correlations.
    """
    monkeypatch.setattr(noise, "_CHUNK", 500)
    n_cells = 2000
    drawn = os_noise().discrete_gaussian(np.zeros(n_cells, dtype=np.int64), 2.0**55)
    assert len(np.unique(drawn)) == n_cells
    scaled = drawn / drawn.std()
    at_lag = np.fft.irfft(np.abs(np.fft.rfft(scaled)) ** 2)[1 : n_cells // 2] / math.sqrt(n_cells)
    assert np.abs(at_lag).max() < 7
    # Of 100 cells that are uniform on some 2,000 places, a few are equal by chance.
    zeros = np.zeros(100, dtype=np.int64)
    assert len(np.unique(os_noise().cube(zeros, 0.1))) > 80
    assert len(np.unique(os_noise().hexagon(zeros.reshape(50, 2), 0.1), axis=0)) > 40


def test_no_seed_reaches_the_real_noise(monkeypatch):
    """Generators that can be seeded are not even asked."""

    def forbidden(*_, **__):
        raise AssertionError("a generator with a seed was asked")

    for module, kinds in ((random, random.Random), (np.random, np.random.RandomState)):
        for name, function in list(vars(module).items()):
            if type(getattr(function, "__self__", None)) is kinds:
                monkeypatch.setattr(module, name, forbidden)
    monkeypatch.setattr(np.random, "default_rng", forbidden)
    with pytest.raises(AssertionError):
        random.getrandbits(8)
    with pytest.raises(AssertionError):
        np.random.normal()  # noqa: NPY002 - the global generator is what is tested
    draw(os_noise())


def test_no_environment_reaches_the_real_noise():
    program = (
        "import numpy as np; from understudy.core.privacy.noise import os_noise; n = os_noise(); "
        "z = np.zeros(20, dtype=int); print(n.discrete_gaussian(z, 1e6).tolist(), n.cube(z, 1e-3).tolist())"
    )
    environment = {"PYTHONHASHSEED": "0", "SEED": "0", "RANDFILE": "/dev/zero", "OPENDP_TEST_SEED": "0"}
    one, two = (
        subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, check=True
        ).stdout
        for _ in range(2)
    )
    assert one
    assert one != two


def _child(results):
    results.put([cells.tolist() for cells in draw(os_noise())])


def test_a_forked_process_does_not_draw_its_parents_noise():
    draw(os_noise())  # the generator is in use before the fork
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    children = [context.Process(target=_child, args=(results,)) for _ in range(2)]
    for child in children:
        child.start()
    one, two = (results.get(timeout=60) for _ in children)
    for child in children:
        child.join()
    here = [cells.tolist() for cells in draw(os_noise())]
    assert all(a != b and a != c for a, b, c in zip(one, two, here, strict=True))


@pytest.mark.parametrize("x", ["1/1000000", "1/3", "1", "8", "1234/7", "700"])
@pytest.mark.parametrize("precision", [64, 200, 1500])
def test_the_exponential_is_enclosed(x, precision):
    low, high = noise.exp_minus(Fraction(x), precision)
    with mpmath.workprec(precision + 1200):
        exact = mpmath.exp(-mpmath.mpf(Fraction(x).numerator) / Fraction(x).denominator) * 2**precision
        assert low <= exact <= high
    assert high - low <= 4


BODIES = {"cube": noise.CUBE, "hexagon": noise.HEXAGON}


def exact_weights(body, n_cells, epsilon, stop):
    n_points = {"cube": lambda t: 2 * t + 1, "hexagon": lambda t: 3 * t * t + 3 * t + 1}[body]
    return [mpmath.mpf(n_points(t)) ** n_cells * mpmath.exp(-epsilon * t) for t in range(stop)]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(
    ("n_cells", "epsilon"), [(1, 1.0), (2, 0.1), (3, 7.5), (20, 1.0), (50, 8.0), (5, 60.0), (300, 40.0)]
)
def test_the_radius_is_the_inverse_of_its_exact_distribution(body, n_cells, epsilon):
    # 100 uniform numbers of 128 bits: the t whose interval of the exact distribution holds them.
    rng = np.random.default_rng(3)
    with mpmath.workprec(600):
        weights = exact_weights(
            body, n_cells, mpmath.mpf(epsilon), 100 + int(9 * n_cells / epsilon + 40 / epsilon)
        )
        total = mpmath.fsum(weights)
        ends, ended = [], mpmath.mpf(0)
        for weight in weights:
            ended += weight / total
            ends.append(ended)
        for _ in range(100):
            bits = int.from_bytes(rng.bytes(16))
            expected = next(t for t, end in enumerate(ends) if mpmath.mpf(bits) / 2**128 < end)
            drawn = noise.draw_radius(BODIES[body], n_cells, Fraction(epsilon), lambda n, bits=bits: bits)
            assert drawn == expected


@pytest.mark.parametrize("body", BODIES)
def test_numbers_of_points_are_log_concave(body):
    # What bounds the tails; the comment in `noise` has the argument for all t.
    count = [noise.n_points(BODIES[body], t) for t in range(2000)]
    assert all(b * b > a * c for a, b, c in zip(count, count[1:], count[2:], strict=False))


@pytest.mark.parametrize("radius", [0, 1, 2, 3, 10])
def test_the_hexagons_points_are_numbered_once_each(radius):
    n_points = 3 * radius**2 + 3 * radius + 1
    reach = range(-radius, radius + 1)
    inside = {(c, a) for c in reach for a in reach if abs(c - a) <= radius}
    numbered = noise.hexagon_points(np.arange(n_points), radius)
    assert len(inside) == n_points
    assert set(map(tuple, numbered.tolist())) == inside


def test_a_number_on_the_border_asks_for_more_bits():
    # The 128 bits just below the end of t = 0 do not decide; the bits that follow do.
    with mpmath.workprec(600):
        weights = exact_weights("cube", 3, mpmath.mpf(1), 400)
        border = int(mpmath.floor(weights[0] / mpmath.fsum(weights) * 2**128))
    for following, expected in ((0, 0), (2**128 - 1, 1)):
        answers = iter([border, following])
        assert (
            noise.draw_radius(noise.CUBE, 3, Fraction(1), lambda n, answers=answers: next(answers))
            == expected
        )
        assert next(answers, None) is None


def test_a_hopeless_epsilon_for_the_cube_is_refused():
    with pytest.raises(ValueError, match="too small for 100 cells"):
        mechanisms.knorm_cube(np.zeros(100, dtype=np.int64), epsilon=1e-7, noise=os_noise())


@pytest.mark.parametrize("shape", [(0,), (2, 2)])
def test_the_cube_takes_one_vector(shape):
    with pytest.raises(ValueError, match="one vector"):
        mechanisms.knorm_cube(np.zeros(shape, dtype=np.int64), epsilon=1, noise=os_noise())


@pytest.mark.parametrize("shape", [(0, 2), (2,), (2, 3), (2, 2, 2)])
def test_the_hexagon_takes_pairs(shape):
    with pytest.raises(ValueError, match="correct, answered"):
        mechanisms.knorm_hexagon(np.zeros(shape, dtype=np.int64), epsilon=1, noise=os_noise())


def test_a_hopeless_epsilon_for_the_hexagon_is_refused():
    with pytest.raises(ValueError, match="too small for 100 cells"):
        mechanisms.knorm_hexagon(np.zeros((100, 2), dtype=np.int64), epsilon=1e-7, noise=os_noise())


def test_the_heavy_libraries_are_imported_only_to_draw():
    program = (
        "import sys, understudy.core.privacy.mechanisms, understudy.core.privacy.composition; "
        "print([name for name in ('opendp', 'dp_accounting') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert answer.stdout.strip() == "[]"
