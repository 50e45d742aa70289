"""The list of mutants fits the code, so that `make mutants` can be run at any time; what it runs takes minutes."""

import ast
import importlib.util

import pytest

from tests.privacy.mutants import PACKAGE, ROOT, Mutant, read_mutants, unmatched

MUTANTS = read_mutants()


def test_every_mutant_changes_a_text_that_is_there_once():
    assert unmatched(MUTANTS) == []
    assert len(MUTANTS) >= 40
    assert len({(mutant.file, mutant.text, mutant.becomes) for mutant in MUTANTS}) == len(MUTANTS)


def test_every_mutant_is_a_program():
    for mutant in MUTANTS:
        ast.parse(mutant.applied_to((PACKAGE / mutant.file).read_text(encoding="utf-8")), mutant.file)
        assert mutant.becomes != mutant.text


def test_the_tests_that_are_named_are_there():
    named = {test for mutant in MUTANTS for test in mutant.tests}
    sources = {
        file: (ROOT / file).read_text(encoding="utf-8") for file in {test.split("::")[0] for test in named}
    }
    for test in named:
        file, _, name = test.partition("::")
        assert f"def {name}(" in sources[file] if name else sources[file], test


def test_a_mutant_does_what_its_sentence_says(tmp_path):
    """One of them, run here: half of the variance."""
    mutant = next(one for one in MUTANTS if one.breaks == "Gaussian noise is smaller by sqrt(2)")
    source = (PACKAGE / mutant.file).read_text(encoding="utf-8")
    (tmp_path / "mutated.py").write_text(mutant.applied_to(source), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("mutated", tmp_path / "mutated.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.gaussian_sigma(1.0, 0.5) == pytest.approx(1 / 2**0.5)


@pytest.mark.parametrize("source", ["no such text", "twice twice"])
def test_a_text_that_is_not_there_once_is_said(source):
    with pytest.raises(ValueError, match="and not once"):
        Mutant("", "a.py", "twice", "", ()).applied_to(source)
