"""The static checks: plain scripts pass, tricks are named with their line."""

import pytest

from tests.cohorts.support.chat_server import GOOD_SCRIPT
from understudy.cohorts import offline
from understudy.cohorts.panel.scripts import LONGEST_SCRIPT, check_script

HEAD = "import numpy as np\nimport pandas as pd\n"
BODY = "def generate(n, label, summary, rng):\n    "


def kinds(source):
    return [one.kind for one in check_script(source)]


def test_plain_scripts_pass():
    assert kinds(GOOD_SCRIPT) == []
    helper = (
        "WEEKS = 17\nSHAPE: float = 2.0\n\n\ndef _row(rng):\n    return rng.gamma(SHAPE, size=WEEKS)\n\n\n"
    )
    assert kinds(HEAD + helper + BODY + "return pd.DataFrame([_row(rng) for _ in range(n)])\n") == []
    scipy = "from scipy import stats\nfrom numpy.random import Generator\n"
    assert kinds(scipy + BODY + "return stats.gamma.rvs(2, size=n, random_state=rng)\n") == []


@pytest.mark.parametrize("name", offline.PANELISTS)
def test_our_own_scripts_pass(name):
    assert kinds(offline.scripts()[name]) == []


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("import os", "ForbiddenImport"),
        ("import numpy.f2py", "ForbiddenImport"),
        ("from pandas import io", "ForbiddenImport"),
        ("from pandas import read_csv", "ForbiddenImport"),
        ("from numpy import *", "ForbiddenImport"),
        ("from . import secrets", "ForbiddenImport"),
        ("return open('/etc/passwd').read()", "ForbiddenName"),
        ("return eval('1')", "ForbiddenName"),
        ("exec('1')", "ForbiddenName"),
        ("return __import__('os')", "ForbiddenName"),
        ("return getattr(np, 'load')", "ForbiddenName"),
        ("return __builtins__", "ForbiddenName"),
        ("print(summary)", "ForbiddenName"),
        ("return ().__class__.__base__.__subclasses__()", "ForbiddenAttribute"),
        ("return np.load('x')", "ForbiddenAttribute"),
        ("return np.lib", "ForbiddenAttribute"),
        ("return pd.read_pickle('x')", "ForbiddenAttribute"),
        ("return pd.DataFrame().to_csv('x')", "ForbiddenAttribute"),
        ("return pd.DataFrame().query('@x')", "ForbiddenAttribute"),
        ("return np.asarray(1)._secret", "ForbiddenAttribute"),
        ("return '{0.__class__}'.format(n)", "ForbiddenString"),
        ("global COUNT", "ForbiddenStatement"),
        ("return np.random.normal(size=n)", "OtherRandomness"),
        ("return np.random.default_rng(1)", "OtherRandomness"),
        ("from scipy import stats; return stats.norm.rvs(size=n)", "OtherRandomness"),
        ("from numpy.random import normal", "OtherRandomness"),
        ("return pd.Timestamp.now().second", "OtherRandomness"),
        ("return hash(label)", "OtherRandomness"),
    ],
)
def test_tricks_are_named_with_their_line(line, kind):
    findings = check_script(HEAD + BODY + line + "\n")
    assert [(one.kind, one.line) for one in findings if one.kind == kind] == [(kind, 4)]


@pytest.mark.parametrize(
    "statement",
    [
        "np.seterr(all='ignore')",
        "TABLE = pd.DataFrame()",
        "if True:\n    pass",
        "for i in range(3):\n    pass",
        "class Table(dict):\n    pass",
        "class Table:\n    np.seterr(all='ignore')",
        "class Table:\n    def __getattr__(self, name):\n        return 1",
        "@np.vectorize\ndef f(x):\n    return x",
        "def f(x=np.zeros(3)):\n    return x",
        "async def f(x):\n    return x",
        "generate2 = lambda: 1",
    ],
)
def test_nothing_runs_at_import(statement):
    assert "ForbiddenStatement" in kinds(HEAD + statement + "\n\n" + BODY + "return pd.DataFrame()\n")


@pytest.mark.parametrize(
    "source",
    [
        "",
        "def produce(n, label, summary, rng):\n    return 1\n",
        "def generate(n, label, summary):\n    return 1\n",
        "def generate(label, n, summary, rng):\n    return 1\n",
        "def generate(n, label, summary, rng, *more):\n    return 1\n",
        BODY + "return 1\n" + BODY + "return 2\n",
    ],
)
def test_there_is_one_entry_with_the_right_parameters(source):
    assert "WrongEntry" in kinds(source)


def test_damaged_and_endless_scripts_are_answered():
    assert kinds("def generate(:\n") == ["SyntaxError"]
    assert check_script("x = 1\ndef generate(:\n")[0].line == 2
    assert kinds("\0") == ["SyntaxError"]
    assert kinds("(" * 5000) == ["SyntaxError"]
    assert kinds("x = " + "-" * 90_000 + "1") in (["SyntaxError"], ["WrongEntry"])
    assert kinds("#" * (LONGEST_SCRIPT + 1)) == ["TooLong"]
