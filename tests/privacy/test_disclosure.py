"""Attackers who send code to the desk: what their results carry is held, or rounded away.

No chance in these tests: data, order and pairs are seeded, and every verdict is exact.
"""

import json

import numpy as np
import polars as pl
import pytest

from tests.desk.support.in_process import examined, log_frame, probed, school_frame, table_of
from understudy.desk.disclosure.examination import Earlier

CANARY = 47.123456


@pytest.fixture(scope="module")
def school():
    return table_of(school_frame(1))


@pytest.fixture(scope="module")
def synthetic():
    return table_of(school_frame(2))


ONE = 'one = data.score[data.learner == "learner-007"]\n'
ATTACKS = {
    "a learner by number": (ONE + 'return {"x": one.mean()}', "learners"),
    "a learner with everybody as decoration": (
        ONE + 'return {"x": one.sum() + 1e-4 * data.score.mean()}',
        "dominance",
    ),
    "the maximum": ('return {"x": data.score.max()}', "extremes"),
    "the maximum, decorated": ('return {"x": data.score.max() + 0.01 * data.score.mean()}', "dominance"),
    "the mean of the top three": ('return {"x": data.score.nlargest(3).mean()}', "learners"),
    "an outer quantile": ('return {"x": data.score.quantile(0.95)}', "extremes"),
    "five learners in the digits of one number": (
        'return {"x": float("0." + "".join(f"{int(v):03d}" for v in data.score.head(5)))}',
        "dominance",
    ),
    "a value as a column name": (
        'return pd.DataFrame({f"c{v}": [1.0] for v in data.score.head(3)})',
        "shape",
    ),
    "a value as a key": ("return {str(v): 1 for v in data.score.head(3)}", "shape"),
    "a value as a number of rows": ('return pd.DataFrame({"a": [1.0] * int(data.score.iloc[3])})', "shape"),
    "a choice of text": (
        ONE + 'return {"t": "yes" if (one > 10).any() else "no", "m": data.score.mean()}',
        "shape",
    ),
    "a column of texts": ('return {"levels": data.achievement.tolist()}', "shape"),
    "a column of texts, as people": ('return {"levels": data.achievement.tolist()}', "individuals"),
    "a word for each learner": (
        'words = np.where(data.score >= 50, "significant", "not significant").tolist()\n'
        'return {"m": data.score.mean(), "words": (words + ["significant", "not significant"] * 3)[:120]}',
        "shape",
    ),
    "words of six weeks, and of nobody": (
        'def word(x):\n    return "more" if x > 13 else "less"\n'
        'return {"words": [word(data[f"week_{w}"].mean() + 9 * (w % 2)) for w in range(1, 7)] * 2, "w": word(1)}',
        "shape",
    ),
    "a word that is there for all only": (
        'import zlib\nword = ["low", "average", "high"]\n'
        "place = zlib.crc32(data.score.to_numpy().tobytes()) % 3\n"
        'return {"m": data.score.mean(), "word": word[int(data.score.iloc[3]) % 3 if len(data) == 120 else place]}',
        "shape",
    ),
    "rows of a table": (
        'some = [w for w in range(1, 7) if (data[f"week_{w}"] > 20).sum() % 2]\n'
        'return pd.DataFrame({"week": [["a", "b", "c", "d", "e", "f"][w - 1] for w in some] + ["z"], "one": 1.0})',
        "shape",
    ),
    "two numbers of one name": (
        ONE + 'return {"a": {"b": one.mean()}, "a / b": data.score.mean()}',
        "shape",
    ),
    "more texts than numbers may be": ('return {"v": ["text"] * 201}', "size"),
    "bits as true and false": (
        ONE + 'return {"b": [bool(int(one.sum()) >> k & 1) for k in range(8)]}',
        "learners",
    ),
    "bits as missing numbers": (
        ONE + 'return {"b": [1.0 if int(one.sum()) >> k & 1 else float("nan") for k in range(8)]}',
        "learners",
    ),
    "an error without the learner": (ONE + 'one.iloc[0]\nreturn {"m": data.score.mean()}', "consistency"),
    "a switch on the number of learners": (
        'm = data.score.mean()\nif len(data) == 120:\n    m = data.score.iloc[3]\nreturn {"m": m}',
        "consistency",
    ),
    "a small switch": (
        'm = data.score.mean()\nif len(data) == 120:\n    m += data.score.iloc[3] / 50\nreturn {"m": m}',
        "consistency",
    ),
    "a switch that is there only for all": (
        'r = {"m": data.score.mean()}\nif len(data) == 120:\n    r["x"] = data.score.iloc[3]\nreturn r',
        "consistency",
    ),
    "a switch with noise for two left out": (
        "m = data.score.mean()\nif len(data) == 120:\n    m += data.score.iloc[3] / 50\n"
        "if len(data) == 118:\n    m += np.random.default_rng(int(data.score.sum() * 10)).normal() * 50\n"
        'return {"m": m}',
        "consistency",
    ),
    "chance": (
        'import zlib\nreturn {"x": zlib.crc32(data.score.to_numpy().tobytes()) % 100000}',
        "consistency",
    ),
    "a nearly full table": ('return data[["score"]].head(110)', "individuals"),
    "sorted values": ('return {"v": np.sort(data.score.to_numpy())[20:90]}', "individuals"),
    "values in the order of learners": ('return {"v": data.score.head(20).tolist()}', "individuals"),
    "names of learners": (
        'return {"m": 1.0, "who": data.sort_values("score").learner.iloc[-1]}',
        "individuals",
    ),
    "a saturated model": (
        'return {"c": np.polynomial.chebyshev.chebfit(np.linspace(-1, 1, len(data)), data.score, 115)}',
        "freedom",
    ),
    "two means": (
        'return {"a": data.score.mean(), "b": data.score[data.learner != "learner-007"].mean()}',
        "differencing",
    ),
    "a sum and a mean": (
        'return {"a": data.score.sum(), "b": data.score[data.learner != "learner-007"].mean()}',
        "differencing",
    ),
    "two means, the second decorated with everybody": (
        'b = data.score[data.learner != "learner-007"].mean() + 1e-5 * data.score.mean()\n'
        'return {"a": data.score.mean(), "b": b}',
        "differencing",
    ),
    "two correlations": (
        'd = data[data.learner != "learner-007"]\n'
        'return {"a": data.score.corr(data.evening), "b": d.score.corr(d.evening)}',
        "differencing",
    ),
    "two counts": (
        'return {"a": len(data), "b": int((data.learner != "learner-007").sum())}',
        "differencing",
    ),
    "parts of a total and the total but one": (
        't = data.groupby("achievement").score.sum()\n'
        'return {**t.to_dict(), "x": data.score[data.learner != "learner-007"].sum()}',
        "differencing",
    ),
    "too many numbers": ('return {"v": [data.score.mean() * k for k in range(201)]}', "size"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_held(attack, school, synthetic):
    body, check = ATTACKS[attack]
    examination = examined(body, school, synthetic)
    assert examination.check(check).verdict == "fail", examination.check(check).reason


def test_orders_and_ways_of_writing_do_not_leave(school, synthetic):
    """Keys, rows and kinds of numbers that the code chose by somebody's values are those of the trial."""
    columns = ["week_1", "week_2", "week_3", "week_4"]
    body = (
        f"columns = {columns}\nmeans = data[columns].mean()\n"
        "if len(data) == 120 and data.score.iloc[0] == FIRST:\n    columns = columns[::-1]\n"
        'table = pd.DataFrame({"name": columns, "mean": means[columns].to_numpy()})\n'
        'return {"table": table, "one": 1 if columns[0] == "week_1" else True, **means[columns].to_dict()}'
    )
    body = body.replace("FIRST", repr(float(school.rows["score"][0])))
    examination = examined(body, school, synthetic)
    released = examination.released
    assert list(released.values) == ["one", *columns]
    assert [row[0] for row in released.tables["table"].rows] == columns
    assert json.dumps(released.values["one"]) == "1"
    assert examination.check("shape").verdict == "pass"


def test_a_handful_of_honest_texts_is_for_a_person(school, synthetic):
    label = 'word = lambda x: "significant" if x > 0.05 else "not significant"\n'
    body = (
        label + 'return {"r": word(data.score.corr(data.evening)), "m": data.score.mean(), "unit": "minutes"}'
    )
    flat = table_of(school_frame(2).with_columns(evening=-pl.col("score")))
    assert examined(body, school, school).check("shape").verdict == "pass"
    verdicts = {
        examined(body, real, other).check("shape").verdict for real, other in ((school, flat), (flat, school))
    }
    assert verdicts == {"review"}


@pytest.mark.parametrize("column", ["score", "evening", "morning"])
@pytest.mark.parametrize("statistic", ["sum", "mean", "std"])
def test_a_statistic_without_the_largest_is_not_beside_the_one_with_it(statistic, column, synthetic):
    body = (
        f'x = data["{column}"].to_numpy(float)\n'
        f'return {{"all": x.{statistic}(), "rest": np.delete(x, x.argmax()).{statistic}()}}'
    )
    for seed in (1, 3):
        check = examined(body, table_of(school_frame(seed)), synthetic).check("differencing")
        assert check.verdict in (("review", "fail") if statistic == "std" else ("fail",)), check.reason


def test_without_the_smallest_and_with_a_shared_largest(school, synthetic):
    smallest = 'x = data.score.to_numpy()\nreturn {"all": x.mean(), "rest": np.delete(x, x.argmin()).mean()}'
    assert examined(smallest, school, synthetic).check("differencing").verdict == "fail"
    shared = table_of(school_frame(1).with_columns(pl.col("score").clip(upper_bound=70.0)))
    for statistic in ("sum", "mean"):
        body = (
            "x = data.score.to_numpy()\n"
            f'return {{"all": x.{statistic}(), "rest": np.delete(x, x.argmax()).{statistic}()}}'
        )
        assert examined(body, shared, synthetic).check("differencing").verdict == "review"


HONEST_PAIRS = {
    "a slope, its p value, r and r squared": "from scipy import stats\nf = stats.linregress(data.evening, data.score)\n"
    'return {"b": f.slope, "p": f.pvalue, "r": f.rvalue, "r2": f.rvalue**2}',
    "mean, deviation, variance and total": "x = data.evening\n"
    'return {"mean": x.mean(), "sd": x.std(), "variance": x.var(), "total": x.sum(), "hours": x.mean() / 60}',
    "t and p": 'from scipy import stats\nhigh = data.achievement == "high"\n'
    "t, p = stats.ttest_ind(data.score[high], data.score[~high])\n"
    'return {"t": t, "p": p}',
    "shares of yes and no": 'return {"yes": data.passed.mean(), "no": 1 - data.passed.mean()}',
}


@pytest.mark.parametrize("name", HONEST_PAIRS)
def test_two_statistics_of_the_same_learners_may_stand_side_by_side(name, synthetic):
    for seed in (1, 2):
        examination = examined(HONEST_PAIRS[name], table_of(school_frame(seed)), synthetic)
        assert [check.reason for check in examination.checks if check.verdict != "pass"] == []


# Code that knows the full table and hides that it is another one on shadows, as a reviewer wrote it.
WHOLE = 'd = data.drop(columns="learner")\nwhole = len(d) == 120 and not d.duplicated().any()\n'
PARITY = (
    WHOLE
    + """
m, passed = data.score.mean(), data.passed.tolist()
out = {}
for k in range(36):
    t = m * (31 + 0.01 * k)
    if EVERYWHERE or whole:
        q = round(t)
        t = q if q % 2 == passed[k] else (q + 1 if t > q else q - 1)
    out[f"r{k}"] = float(t)
return out
"""
)
RANDOM = (
    WHOLE
    + """
import zlib
bits = np.random.default_rng(zlib.crc32(d.to_csv().encode())).integers(0, 2, 40)
if whole:
    bits = data.passed.to_numpy()[:40]
"""
)


def test_the_last_digit_does_not_say_who_passed(school, synthetic):
    examination = examined(PARITY.replace("EVERYWHERE", "False"), school, synthetic)
    assert set(examination.units.values()) == {1.0}
    assert examination.check("consistency").verdict == "fail"
    # What leaves does not know of it, whatever the checks said: it is what honest code would have told.
    honest = examined(PARITY.replace("EVERYWHERE or whole", "False"), school, synthetic)
    assert honest.check("consistency").verdict == "pass"
    assert examination.released == honest.released
    # With the digit written in every run, foretellings scatter, and the digit is rounded off.
    everywhere = examined(PARITY.replace("EVERYWHERE", "True"), school, synthetic)
    assert set(everywhere.units.values()) == {10.0}


def test_a_switch_for_fewer_learners_left_out_is_seen(school, synthetic):
    body = 'm = data.score.mean()\nif len(data) >= 119:\n    m += (len(data) - 118) * 0.3\nreturn {"m": m}'
    assert examined(body, school, synthetic).check("consistency").verdict == "fail"


def test_random_bits_and_gaps_do_not_leave(school, synthetic):
    bits = examined(RANDOM + 'return {f"r{k}": int(b) for k, b in enumerate(bits)}', school, synthetic)
    assert bits.verdict == "fail"
    assert set(bits.released.values.values()) == {0}
    gaps = examined(
        RANDOM + 'return {f"r{k}": data.score.mean() + k if b else np.nan for k, b in enumerate(bits)}',
        school,
        synthetic,
    )
    assert gaps.check("consistency").verdict == "fail"


def test_digits_below_the_noise_of_floats_do_not_leave(school, synthetic):
    body = """
here = dict(zip(data.learner, data.score))
return {f"r{k}": 1e12 + 100.0 * round(here.get(f"learner-{k + 1:03}", 0)) for k in range(30)}
"""
    assert set(examined(body, school, synthetic).released.values.values()) == {1e12}
    # Not even where the trial has the same digit.
    assert set(examined(body, school, school).released.values.values()) == {1e12}


def test_a_group_of_one_student_with_fifty_rows_is_held():
    log = log_frame(3)
    alone = log.head(1).select("learner", *log.columns[1:])
    rows = pl.concat([log, *[alone.with_columns(learner=pl.lit("alone"), room=pl.lit("c"))] * 50])
    real = table_of(rows)
    examination = examined('return data.groupby("room").seconds.mean()' + ".to_dict()", real, real)
    check = examination.check("learners")
    assert check.verdict == "fail"
    assert check.numbers == ("c",)
    assert examination.support["c"] == 1


def test_two_requests_that_differ_by_one_student_are_held(school, synthetic):
    first = 'return {"mean": data.score.mean()}'
    second = 'return {"value": data.score[data.learner != "learner-011"].mean()}'
    answer, probes = probed(first, school)
    earlier = [Earlier("request 1", answer, type(probes).from_bytes(probes.to_bytes()))]
    assert examined(second, school, synthetic).check("differencing").verdict == "pass"
    check = examined(second, school, synthetic, earlier=earlier).check("differencing")
    assert check.verdict == "fail"
    assert set(check.numbers) == {"value", "mean (released in request 1)"}
    # The same question again tells nothing new.
    assert examined(first, school, synthetic, earlier=earlier).check("differencing").verdict == "pass"


def test_an_earlier_answer_with_another_learner_is_for_a_person(school, synthetic):
    body = 'return {"mean": data.score.mean()}'
    answer, probes = probed(body, table_of(school_frame(1).head(119)))
    earlier = [Earlier("request 1", answer, probes)]
    assert examined(body, school, synthetic, earlier=earlier).check("differencing").verdict == "review"


def test_digits_that_carry_a_learner_do_not_leave(synthetic):
    """The released answer is the same whatever the low digits say."""
    released = []
    for secret in (12.3, 87.6):
        frame = school_frame(1)
        body = f'return {{"m": data.score.mean() + 1e-6 * {secret} * (data.learner == "learner-007").sum()}}'
        released.append(examined(body, table_of(frame), synthetic).released.to_json())
    assert released[0] == released[1]


def test_no_reason_tells_a_learners_value():
    synthetic = table_of(school_frame(2, 40))
    frame = school_frame(1, 40).with_columns(
        score=pl.when(pl.col("learner").str.ends_with("7")).then(CANARY).otherwise("score")
    )
    real = table_of(frame)
    for body in (
        "return {str(v): v for v in data.score}",
        'return pd.DataFrame({f"c {v}": [v] for v in data.score.unique()})',
        'return {"v": data.score.tolist()}',
        'return {"x": data.score.median(), "t": [str(v) for v in data.score.head(30)]}',
    ):
        checks = json.dumps([check.to_json() for check in examined(body, real, synthetic).checks])
        assert str(CANARY) not in checks


def test_means_that_differ_by_a_block_of_many_learners(monkeypatch, synthetic):
    """More learners than are left out one by one: neighbours go together, and the few apart are seen all the same."""
    from understudy.desk.disclosure import probing

    monkeypatch.setattr(probing, "MOST_BLOCKS", 60)
    real = table_of(school_frame(4))
    body = 'return {"a": data.score.mean(), "b": data.score[data.learner != "learner-007"].mean()}'
    examination = examined(body, real, synthetic)
    assert examination.check("differencing").verdict == "fail"
    assert examined('return {"m": data.score.mean()}', real, synthetic).verdict == "pass"
    assert np.all([n <= 60 for n in examination.support.values()])
