"""The offline panelists: plain scripts, any schema, and no effect that the noise could have made."""

import ast

import numpy as np
import pytest

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.offline import PANELISTS, run_trusted, scripts
from understudy.cohorts.offline.summary_reading import read_summary, shrunk
from understudy.cohorts.panel.scripts import check_script
from understudy.cohorts.schema import Feature, Schema
from understudy.cohorts.simulate import School
from understudy.cohorts.summary.budget import ANALYSES, propose
from understudy.cohorts.summary.mechanism import noisy_summary
from understudy.core.privacy.noise import seeded_noise
from understudy.errors import UsageError


def measured(cohort, epsilon=3.0, seed=1, **more):
    plan = propose(cohort.schema, cohort.n_learners, epsilon, 1e-3, **more)
    return noisy_summary(cohort, plan, seeded_noise(np.random.default_rng(seed)))


def invented(name, summary, n=2000, seed=0):
    schema, rng = summary.schema, np.random.default_rng(seed)
    frames = [run_trusted(name, n, label, summary, rng) for label in schema.labels]
    values = np.concatenate([frame.to_numpy() for frame in frames])
    return Cohort(
        values.reshape(-1, schema.n_features, schema.n_weeks),
        np.repeat(np.arange(schema.n_labels), n).astype(np.int8),
        schema,
    )


@pytest.fixture(scope="module")
def cohort():
    return School().simulate(0, np.random.default_rng(5))


@pytest.fixture(scope="module")
def clear(cohort):
    """A summary with next to no noise."""
    return measured(cohort, epsilon=90.0)


@pytest.mark.parametrize("name", PANELISTS)
def test_a_script_passes_the_panels_checks_and_stands_alone(name, clear):
    source = scripts()[name]
    assert check_script(source) == ()
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom | ast.Import)]
    assert "understudy" not in {name.split(".")[0] for node in imports for name in _modules(node)}
    space = {"__name__": "script"}
    exec(compile(source, name, "exec"), space)  # noqa: S102 - our own script
    frame = space["generate"](20, "high", clear.to_json(), np.random.default_rng(3))
    again = run_trusted(name, 20, "high", clear, np.random.default_rng(3))
    assert list(frame.columns) == clear.schema.columns()
    assert (frame.to_numpy() == again.to_numpy()).all()


def _modules(node):
    return [node.module] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]


def test_the_panelists_differ():
    assert len(set(scripts().values())) == len(PANELISTS) == 3
    with pytest.raises(UsageError):
        run_trusted("nobody", 1, "high", None, np.random.default_rng(1))


@pytest.mark.parametrize("name", PANELISTS)
def test_without_noise_the_cohort_comes_back(name, cohort, clear):
    """Activity, spread of learners, level and rhythm of 6,000 invented learners against the 120 real ones."""
    made = invented(name, clear)
    real, synthetic = cohort.values > 0, made.values > 0
    assert np.abs(real.mean(axis=(0, 2)) - synthetic.mean(axis=(0, 2))).max() < 0.04
    assert np.abs(real.mean(axis=2).std(axis=0) - synthetic.mean(axis=2).std(axis=0)).max() < 0.05
    assert np.abs(real.mean(axis=(0, 1)) - synthetic.mean(axis=(0, 1))).max() < 0.05
    sizes = [np.log(one.values[:, :3][one.values[:, :3] > 0]).mean() for one in (cohort, made)]
    assert abs(sizes[0] - sizes[1]) < 0.15
    effects = [
        [np.corrcoef(one.label, (one.values[:, f] > 0).mean(axis=1))[0, 1] for f in range(4)]
        for one in (cohort, made)
    ]
    assert np.abs(np.subtract(*effects)).max() < 0.15


@pytest.mark.parametrize("name", PANELISTS)
def test_shuffled_labels_get_next_to_no_effect(name, cohort):
    """Ten cohorts whose labels mean nothing, at epsilon 3: what the noise makes of them is pulled to none."""
    found = []
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(cohort.n_learners)
        summary = measured(Cohort(cohort.values, cohort.label[order], cohort.schema), seed=seed)
        made = invented(name, summary, n=300)
        found.append([np.corrcoef(made.label, (made.values[:, f] > 0).mean(axis=1))[0, 1] for f in range(3)])
    # A correlation is significant for 120 learners from 0.18 on.
    assert np.abs(found).mean() < 0.12


def test_an_effect_that_is_there_is_kept(cohort):
    effects = [read_summary(measured(cohort, seed=seed).to_json(), "high")["effect"][2] for seed in range(8)]
    assert np.mean(np.array(effects) > 0.05) > 0.7


def test_shrinking():
    sd = np.ones(6)
    assert shrunk(np.array([0.5, -0.5, 0.8, -0.9, 0.1, 0.2]), sd) == pytest.approx(np.zeros(6))
    strong = np.array([10.0, -10.0, 9.0, -9.0, 8.0, -8.0])
    assert np.abs(shrunk(strong, sd) / strong - 1).max() < 0.02
    assert shrunk(np.array([1.0, 1.2]), np.ones(2), 1.1) == pytest.approx([1.1, 1.1])


SCHEMAS = [
    Schema(features=(Feature("pages", 5.0),), n_weeks=2, labels=("no", "yes")),
    Schema(
        features=(Feature("a", 1e5), Feature("b", 0.5), Feature("c", 60.0)), n_weeks=3, labels=tuple("abcd")
    ),
    Schema(n_weeks=40),
]
RULES = {
    "nobody active": lambda rng, shape: np.zeros(shape),
    "all at the bound": lambda rng, shape: np.full(shape, 1e9),
    "mixed": lambda rng, shape: rng.gamma(0.5, 40.0, shape) * (rng.random(shape) < 0.4),
}


@pytest.mark.parametrize("schema", SCHEMAS, ids=["tiny", "four labels", "long"])
@pytest.mark.parametrize("kind", RULES)
@pytest.mark.filterwarnings("error")
def test_any_schema_and_any_data_give_a_table_within_the_bounds(schema, kind):
    rng = np.random.default_rng(9)
    shape = (25, schema.n_features, schema.n_weeks)
    cohort = Cohort(RULES[kind](rng, shape), rng.integers(0, schema.n_labels, 25).astype(np.int8), schema)
    wanted = [{}, *({"analyses": [name]} for name in ANALYSES), {"statistics": ["zeros"]}]
    for epsilon, more in [(0.05, {}), *((1.0, more) for more in wanted), (20.0, {})]:
        summary = measured(cohort, epsilon, **more)
        for name in PANELISTS:
            frame = run_trusted(name, 30, schema.labels[-1], summary, rng)
            values = frame.to_numpy().reshape(30, schema.n_features, schema.n_weeks)
            assert list(frame.columns) == schema.columns()
            assert np.isfinite(values).all()
            assert (values >= 0).all()
            assert (values <= schema.highs[None, :, None]).all()
