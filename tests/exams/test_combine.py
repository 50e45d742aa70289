"""difficulties combine: what it refuses, what it states, and that it holds on simulated schools."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

import understudy as us
from tests.exams.support.made_difficulties import make_difficulties
from tests.support.command import run
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.ledger import Ledger
from understudy.core.privacy.noise import seeded_noise
from understudy.core.privacy.population import SIMULATED_POPULATION
from understudy.errors import DataError, RefusedError, UsageError
from understudy.exams.combine import combine_difficulties
from understudy.exams.difficulties import DifficultiesOptions, fit_difficulties
from understudy.exams.plan import plan
from understudy.exams.released_file import ONE_SCHOOL_EACH
from understudy.exams.responses import Responses


def release(rng, truth, items, n=300, mean=0.0, **settings):
    """What a school would release; the seeded noise is stated as if it were secret."""
    ability = rng.normal(mean, 1.3, n)
    guess = settings.get("guess", 0.0)
    chance = guess + (1 - guess) * expit(ability[:, None] - truth[items])
    correct = (rng.random(chance.shape) < chance).astype(np.int8)
    responses = Responses(correct, tuple(f"Task {i + 1}" for i in items), declared=True, simulated=True)
    planned = plan(DifficultiesOptions(**{"epsilon": 2.0, **settings}), len(items), n)
    found = fit_difficulties(responses, planned, seeded_noise(rng), rng)
    return replace(found, guarantee=planned.guarantee)


@pytest.fixture
def schools():
    rng = np.random.default_rng(1)
    truth = rng.normal(0, 1.4, 12)
    return {
        "north": release(rng, truth, np.arange(0, 9), mean=0.5),
        "south": release(rng, truth, np.arange(3, 12), n=500, mean=-0.5, epsilon=1.0),
    }


def test_schools_share_a_scale_and_a_file_that_the_students_side_reads(schools, tmp_path):
    found = us.combine_difficulties(schools, out=tmp_path / "joint.json", title="Both")
    joint = us.Difficulties.read(tmp_path / "joint.json")
    assert joint == found.difficulties
    assert joint.title == "Both"
    assert [item.name for item in joint.items] == [f"Task {i + 1}" for i in range(12)]
    north, south = found.schools
    assert north.ability > 0 > south.ability
    assert north.ability * 300 + south.ability * 500 == pytest.approx(0.0, abs=1e-6)
    assert (north.n_common, south.n_common) == (6, 6)
    assert joint.ability.sd > min(school.ability.sd for school in schools.values())
    assert found.to_json()["provenance"]["schools"][0]["name"] == "north"
    assert us.ability(joint, _answers(tmp_path), missing="wrong").chances()


def _answers(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("item,correct\nTask 1,1\n")
    return path


def test_a_combined_file_can_be_combined_again_and_not_with_its_parts(schools):
    rng = np.random.default_rng(2)
    joint = combine_difficulties(schools).difficulties
    joint.provenance["schools"][0]["cards"] = ["aa"]
    more = release(rng, np.zeros(12), np.arange(2, 8))
    again = combine_difficulties({"both": joint, "west": more})
    assert again.schools[0].n_learners == 800
    assert again.schools[0].cards == ("aa",)
    schools["north"].provenance["card"] = "aa"
    with pytest.raises(RefusedError) as caught:
        combine_difficulties({"both": joint, "north": schools["north"]})
    assert caught.value.code == "same-release"


def test_a_learner_of_one_school_bears_the_largest_epsilon_and_one_of_several_the_sum(schools):
    alone = combine_difficulties(schools).difficulties
    assert (alone.guarantee.epsilon, alone.guarantee.delta) == (2.0, 0.0)
    assert alone.guarantee.caveats == (ONE_SCHOOL_EACH,)
    assert alone.provenance["in_all_schools"] == {"epsilon": 3.0, "delta": 0.0}
    both = combine_difficulties(schools, may_overlap=True).difficulties.guarantee
    assert both.epsilon == 3.0
    assert not both.caveats


@pytest.fixture
def three():
    """Releases of three schools, at epsilon 1 and delta 1e-6 each."""
    rng = np.random.default_rng(7)
    truth = rng.normal(0, 1, 6)
    return [
        replace(release(rng, truth, np.arange(6), title=name), guarantee=Guarantee(1.0, 1e-6))
        for name in ("north", "south", "west")
    ]


def test_whoever_is_in_all_parts_of_a_combined_file_bears_all_of_them(three):
    *two, last = three
    apart = combine_difficulties(two).difficulties
    assert (apart.guarantee.epsilon, apart.guarantee.caveats) == (1.0, (ONE_SCHOOL_EACH,))
    overlap = combine_difficulties([apart, last], may_overlap=True).difficulties
    assert (overlap.guarantee.epsilon, overlap.guarantee.delta) == (3.0, pytest.approx(3e-6))
    assert not overlap.guarantee.caveats
    nested = combine_difficulties([apart, last]).difficulties
    assert nested.guarantee.epsilon == 1.0
    assert nested.provenance["in_all_schools"] == {"epsilon": 3.0, "delta": pytest.approx(3e-6)}
    # Where the sum was stated, it is not counted again.
    summed = combine_difficulties(two, may_overlap=True).difficulties
    assert combine_difficulties([summed, last], may_overlap=True).difficulties.guarantee.epsilon == 3.0


@pytest.mark.parametrize("given", [None, {}, {"epsilon": 0.5, "delta": 1.0}, {"epsilon": "2", "delta": 0}])
def test_a_combined_file_that_does_not_say_what_its_parts_cost_is_refused(three, given):
    apart = combine_difficulties(three[:2]).difficulties
    apart.provenance["in_all_schools"] = given
    with pytest.raises(DataError) as caught:
        combine_difficulties([apart, three[2]], may_overlap=True)
    assert caught.value.code == "damaged-file"


def charged(path, populations):
    """A ledger with a release of each card about a population."""
    ledger = Ledger(path)
    for card, population in populations.items():
        ledger.record(
            population=population, card=card, kind="difficulties", method="knorm", guarantee=Guarantee(1.0)
        )
    return path


def test_releases_about_one_population_are_refused_by_its_ledger(three, tmp_path):
    for card, school in zip("abc", three, strict=True):
        school.provenance["card"] = card * 16
    book = charged(tmp_path / "l", {"a" * 16: "7b", "b" * 16: "8a", "c" * 16: "7b"})
    with pytest.raises(RefusedError) as caught:
        combine_difficulties([three[0], three[2]], ledger=book)
    assert (caught.value.code, caught.value.settings) == ("same-population", ("may_overlap",))
    assert combine_difficulties([three[0], three[2]]).difficulties.guarantee.caveats == (ONE_SCHOOL_EACH,)
    both = combine_difficulties([three[0], three[2]], ledger=book, may_overlap=True)
    assert both.difficulties.guarantee.epsilon == 2.0
    assert not combine_difficulties(three[:2], ledger=book).notes
    # Neither a combined file nor a prior hides them.
    hidden = combine_difficulties(three[1:]).difficulties
    inside = combine_difficulties([three[0], three[2]]).difficulties
    three[1].provenance["earlier_cards"] = ["c" * 16]
    for pair in ([three[0], hidden], [inside, three[1]], three[:2]):
        with pytest.raises(RefusedError) as caught:
            combine_difficulties(pair, ledger=book)
        assert caught.value.code == "same-population"


def test_a_ledger_refuses_neither_a_prior_among_the_parts_nor_simulated_learners_nor_what_it_does_not_know(
    three, tmp_path
):
    for card, school in zip("abc", three, strict=True):
        school.provenance["card"] = card * 16
    three[1].provenance["earlier_cards"] = ["a" * 16]
    book = charged(tmp_path / "l", {"a" * 16: "7b", "b" * 16: "8a"})
    found = combine_difficulties(three, ledger=book)
    assert "west" in found.notes[-1]
    assert "north" not in found.notes[-1]
    assert found.difficulties.cards == ["a" * 16, "b" * 16, "c" * 16]
    assert found.difficulties.earlier_cards == ["a" * 16]
    simulated = charged(tmp_path / "m", dict.fromkeys(["a" * 16, "b" * 16], SIMULATED_POPULATION))
    combine_difficulties(three[:2], ledger=simulated)
    with pytest.raises(UsageError):
        combine_difficulties(three[:2], ledger=tmp_path / "none")


def test_delta_is_combined_like_epsilon(schools):
    given = [
        replace(s, guarantee=Guarantee(1.0, d)) for s, d in zip(schools.values(), (1e-6, 3e-6), strict=True)
    ]
    assert combine_difficulties(given).difficulties.guarantee.delta == 3e-6
    assert combine_difficulties(given, may_overlap=True).difficulties.guarantee.delta == pytest.approx(4e-6)


def test_one_file_without_a_guarantee_leaves_none(schools):
    schools["north"] = replace(schools["north"], guarantee=Guarantee.none("it was not asked for"))
    joint = combine_difficulties(schools).difficulties
    assert not joint.guarantee.formal
    assert "it was not asked for" in joint.guarantee.reason
    assert joint.warnings()


def test_the_cards_of_the_parts_are_known_to_a_later_exam(schools):
    for card, school in zip("ab", schools.values(), strict=True):
        school.provenance["card"] = card
    assert combine_difficulties(schools).difficulties.cards == ["a", "b"]


def test_what_has_no_common_scale_is_refused(schools):
    rng = np.random.default_rng(3)
    truth = np.zeros(12)

    def refused(**others):
        with pytest.raises((RefusedError, UsageError, DataError)) as caught:
            combine_difficulties(others)
        return caught.value.code

    one, two = release(rng, truth, np.arange(0, 5)), release(rng, truth, np.arange(3, 9))
    assert refused(one=one) == UsageError("").code
    assert refused(one=one, two=two) == "few-common-items"
    three, four = release(rng, truth, np.arange(6, 12)), release(rng, truth, np.arange(6, 12))
    assert refused(one=one, two=release(rng, truth, np.arange(0, 5)), three=three, four=four) == "not-linked"
    guessed = release(rng, truth, np.arange(0, 5), guess=0.25)
    assert refused(one=one, two=guessed) == "other-model"
    differing = release(rng, truth, np.arange(0, 5), discrimination_spread=0.3)
    assert refused(one=one, two=differing) == "other-model"
    assert refused(one=one, two=make_difficulties(standard_error=None)) == "no-standard-errors"
    items = (replace(one.items[0], discrimination=1.4), *one.items[1:])
    assert refused(one=release(rng, truth, np.arange(0, 5)), two=replace(one, items=items)) == "other-model"
    broken = release(rng, truth, np.arange(0, 5))
    broken.provenance["totals"]["right"].pop()
    assert refused(one=one, two=broken) == "contract"


def test_files_without_totals_are_taken_as_they_are(schools):
    exact = combine_difficulties(schools)
    for school in schools.values():
        school.provenance["totals"] = None
    found = combine_difficulties(schools)
    assert "north, south" in found.notes[0]
    pairs = zip(found.difficulties.items, exact.difficulties.items, strict=True)
    assert all(abs(a.difficulty - b.difficulty) < a.standard_error + b.standard_error for a, b in pairs)


def test_what_is_combined_is_computed_from_the_files_alone(schools, tmp_path):
    """Post-processing: the same files give the same result, whatever else there is."""
    paths = []
    for name, school in schools.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(school.content()))
        paths.append(path)
    first = combine_difficulties(paths).difficulties.content()
    assert combine_difficulties(schools).difficulties.content() == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["north.json", "south.json"]


def test_misfit_names_item_and_school():
    rng = np.random.default_rng(4)
    truth = rng.normal(0, 1, 10)
    odd = truth.copy()
    odd[3] += 2.0
    items = np.arange(10)
    given = {name: release(rng, truth, items, 800, epsilon=5.0) for name in ("east", "north")}
    given["west"] = release(rng, odd, items, 800, epsilon=5.0)
    found = combine_difficulties(given)
    assert [(each.item, each.school) for each in found.misfits] == [("Task 4", "west")]
    assert "'Task 4' is harder in west than elsewhere" in " ".join(found.lines())


@pytest.mark.parametrize(
    ("n_schools", "n", "epsilon", "between"), [(3, 120, 1.0, 0.0), (4, 60, 1.0, 0.0), (3, 500, 5.0, 0.4)]
)
def test_intervals_cover(n_schools, n, epsilon, between):
    rng = np.random.default_rng(5)
    covered = []
    for _ in range(12):
        truth = rng.normal(0.2, 1.5, 15)
        means = rng.normal(0, 0.5, n_schools)
        given = [
            release(rng, truth + rng.normal(0, between, 15), np.arange(15), n, mean, epsilon=epsilon)
            for mean in means
        ]
        joint = combine_difficulties(given).difficulties
        for item, difficulty in zip(joint.items, truth - means.mean(), strict=True):
            covered.append(abs(item.difficulty - difficulty) < 1.96 * item.standard_error)
    # 180 intervals that are not independent: four standard errors of that around 95 %.
    assert 0.89 <= np.mean(covered) <= 1.0


def test_the_command_combines_and_explains(schools, tmp_path):
    for name, school in schools.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(school.content()))
    done = run("difficulties", "combine", "north.json", "south.json", "-o", "joint.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Nothing was charged" in done.stdout
    assert "in one of the combined files" in done.stdout
    assert (tmp_path / "joint.json").exists()
    done = run("difficulties", "combine", "north.json", "-o", "k.json", "--json", cwd=tmp_path)
    assert done.returncode == 2
    assert "error" in json.loads(done.stderr)
    done = run("difficulties", "combine", "--help", cwd=tmp_path)
    assert "understudy difficulties combine" in done.stdout
