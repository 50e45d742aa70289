"""Every verb that releases, by command and by Python, does the same with the ledger."""

import io
import json
import multiprocessing
import os
import re
import shlex
import shutil
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.support.charging import VERBS
from tests.support.command import run
from understudy.cli import terminal
from understudy.cohorts.summary.summarize import SummarizeOptions
from understudy.core.files.origin import Guess, Origin
from understudy.core.files.simulated import mark_simulated
from understudy.core.privacy.balance import TAKEN_BACK
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.ledger import FILE_NAME, Ledger
from understudy.core.privacy.population import SIMULATED_POPULATION, file_population, normalised
from understudy.core.privacy.spending import Account, Spending
from understudy.errors import DataError, MissingError, RefusedError, UnderstudyError, UsageError
from understudy.keystrokes.group_statistics import StatisticsOptions

pytestmark = [pytest.mark.functional, pytest.mark.usefixtures("quick_releases")]


class ByCommand:
    """Calls a verb as a command; errors come as exit codes."""

    def __init__(self, verb):
        self.verb = verb

    def __call__(self, data, out, **spending):
        options = []
        for name, value in spending.items():
            option = f"--{name.replace('_', '-')}"
            options += [option] if value is True else [option, str(value)]
        return run(*self.verb.command(data, out), *options, "--json", cwd=data.parent)

    def works(self, data, out, **spending):
        done = self(data, out, **spending)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def refuses(self, kind, data, out, **spending):
        done = self(data, out, **spending)
        assert done.returncode == kind.exit_code, done.stderr
        return json.loads(done.stderr)["error"]["code"]


class ByPython:
    """Calls a verb as a function; errors come as exceptions."""

    def __init__(self, verb):
        self.verb = verb

    def __call__(self, data, out, **spending):
        return self.verb.python(data, out, **spending)

    def works(self, data, out, **spending):
        return self(data, out, **spending)

    def refuses(self, kind, data, out, **spending):
        with pytest.raises(kind) as caught:
            self(data, out, **spending)
        return caught.value.code


@pytest.fixture(params=VERBS, ids=lambda verb: verb.name)
def verb(request):
    return request.param


# For what is about the budget: a release without a guarantee has no price.
with_a_price = pytest.mark.parametrize(
    "verb", [verb for verb in VERBS if verb.epsilon is not None], indirect=True, ids=lambda verb: verb.name
)
without_a_price = pytest.mark.parametrize(
    "verb", [verb for verb in VERBS if verb.epsilon is None], indirect=True, ids=lambda verb: verb.name
)


@pytest.fixture(params=[ByCommand, ByPython])
def call(request, verb):
    return request.param(verb)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The data of each verb, made once."""
    folders = {}
    for verb in VERBS:
        folder = tmp_path_factory.mktemp(verb.name.replace(" ", "-"))
        folders[verb.name] = verb.make(folder)
    return folders


@pytest.fixture
def data(made, verb, tmp_path):
    """A copy of the verb's data in a folder of its own."""
    source = made[verb.name]
    shutil.copytree(source.parent, tmp_path / "data")
    return tmp_path / "data" / source.name


@pytest.fixture
def ledger(data):
    return Ledger(data.parent / FILE_NAME)


def spent(ledger):
    return [entry for entry in ledger.entries() if entry.epsilon is not None]


def test_a_release_is_charged_once_to_the_learners_of_its_file(call, verb, data, ledger):
    call.works(data, data.parent / verb.out)
    (entry,) = ledger.entries()
    assert entry.epsilon == (None if verb.epsilon is None else pytest.approx(verb.epsilon))
    assert entry.population == normalised(file_population(verb.charged(data, data.parent / verb.out)))
    assert entry.kind == verb.name
    assert (data.parent / verb.out).exists()


@with_a_price
def test_past_the_limit_it_is_refused_and_nothing_is_written(call, verb, data, ledger):
    ledger.set_limit(normalised(file_population(data)), verb.epsilon / 2)
    assert call.refuses(RefusedError, data, data.parent / verb.out) == "budget"
    assert ledger.entries() == []
    assert not (data.parent / verb.out).exists()


@with_a_price
def test_a_file_that_holds_other_people_now_has_a_budget_of_its_own_if_that_is_declared(verb, data, ledger):
    """The class of next year, saved under the old name: the ledger notes who said so and why, and forgets nothing."""
    ledger.set_limit("learners of this folder", verb.epsilon)
    call, out = ByPython(verb), data.parent / verb.out
    call.works(data, out)
    others = {"population": "8c", "other_learners": True}
    call.works(data, out.with_name(f"second-{verb.out}"), **others, reason="the class of 2025")
    assert [entry.population for entry in spent(ledger)][1] == "8c"
    assert {fact["how"] for fact in ledger.declarations() if fact["population"] == "8c"} == {
        "the class of 2025"
    }
    third = out.with_name(f"third-{verb.out}")
    assert call.refuses(RefusedError, data, third, **others) == "budget"
    # Forgotten, it does not join the two.
    assert call.refuses(RefusedError, data, third, population="8c") == "known-learners"
    assert len({entry.population for entry in ledger.entries("8c")}) == 1


def test_that_these_are_other_people_needs_a_reason(call, verb, data, ledger):
    """It starts a new count, for the very same file, as a higher limit would."""
    call.works(data, data.parent / verb.out)
    second = (data.parent / verb.out).with_name(f"second-{verb.out}")
    others = {"population": "8c", "other_learners": True}
    assert call.refuses(UsageError, data, second, **others) == "no-reason"
    assert not second.exists()
    assert (len(ledger.entries()), ledger.declarations()) == (1, [])
    call.works(data, second, **others, reason="the class of 2025")
    assert [entry.population for entry in ledger.entries()][1] == "8c"


@with_a_price
def test_other_names_of_the_same_file_share_its_budget(call, verb, data, ledger):
    """A file that was charged under one population is charged under another as well."""
    ledger.set_limit("learners of this folder", verb.epsilon)
    call.works(data, data.parent / verb.out, population="class A")
    second = (data.parent / verb.out).with_name("second-" + verb.out)
    assert call.refuses(RefusedError, data, second, population="class B") == "budget"
    assert call.refuses(RefusedError, data, second) == "budget"
    assert len(spent(ledger)) == 1


@without_a_price
def test_a_release_without_a_guarantee_is_noted_whatever_was_spent(call, verb, data, ledger):
    ledger.set_limit(normalised(file_population(data)), 0.0)
    for number in range(2):
        call.works(data, (data.parent / verb.out).with_name(f"{number}-{verb.out}"))
    assert [(entry.kind, entry.epsilon) for entry in ledger.entries()] == 2 * [(verb.name, None)]
    assert ledger.balance(normalised(file_population(data))).n_without_guarantee == 2


def test_a_ledger_elsewhere_is_used_and_none_is_made_beside_the_data(call, verb, data, ledger, tmp_path):
    elsewhere = tmp_path / "books.ledger"
    call.works(data, data.parent / verb.out, ledger=elsewhere)
    assert len(Ledger(elsewhere).entries()) == 1
    assert not ledger.path.exists()


def test_simulated_learners_have_no_limit_and_the_ledger_says_so(call, verb, data, ledger):
    mark_simulated(data)
    ledger.set_limit("learners of this folder", 0.0)
    call.works(data, data.parent / verb.out)
    (entry,) = ledger.entries()
    assert entry.population == SIMULATED_POPULATION
    with pytest.raises(UnderstudyError):
        Ledger(ledger.path).check(normalised(file_population(data)), _costly())


def test_who_declares_learners_simulated_is_written_down(call, verb, data, ledger):
    import sqlite3

    call.works(data, data.parent / verb.out, simulated=True)
    rows = sqlite3.connect(ledger.path).execute("SELECT population, fact, how FROM declarations").fetchall()
    assert (normalised(file_population(data)), "simulated", "declared by the user") in rows
    assert {(fact, how) for _, fact, how in rows} == {("simulated", "declared by the user")}


def test_learners_who_are_known_as_real_cannot_be_declared_simulated(call, verb, data, ledger):
    call.works(data, data.parent / verb.out)
    other = data.parent / f"other-{verb.out}"
    assert call.refuses(RefusedError, data, other, simulated=True) == "known-as-real"
    assert not other.exists()
    assert len(ledger.entries()) == 1


def test_a_second_ledger_is_refused_where_the_first_knows_the_learners(call, verb, data, ledger, tmp_path):
    call.works(data, data.parent / verb.out)
    other, books = data.parent / f"other-{verb.out}", tmp_path / "books.ledger"
    assert call.refuses(RefusedError, data, other, ledger=books) == "ledger-elsewhere"
    assert not other.exists()
    assert not books.exists()


def test_a_copy_under_another_name_is_known_as_the_same_learners(call, verb, data, ledger, tmp_path):
    call.works(data, data.parent / verb.out)
    copy, out = data.with_name(f"copy{data.suffix}"), data.parent / f"other-{verb.out}"
    shutil.copy(data, copy)
    if data.with_suffix(".toml").exists():
        shutil.copy(data.with_suffix(".toml"), copy.with_suffix(".toml"))
    ledger.set_limit("learners of this folder", (verb.epsilon or 0.0) * 1.2)
    # A cohort is linked to its learners by the list of scores as well: there it adds up without a question.
    code = "budget" if verb.name == "cohort build" else "known-learners"
    assert call.refuses(RefusedError, copy, out) == code
    assert call.refuses(RefusedError, copy, out, population="other people") == code
    assert call.refuses(RefusedError, copy, out, simulated=True) == "known-as-real"
    assert call.refuses(RefusedError, copy, out, ledger=tmp_path / "books") == "ledger-elsewhere"
    if verb.epsilon is not None:
        known = file_population(verb.charged(data, data.parent / verb.out))
        assert call.refuses(RefusedError, copy, out, population=known) == "budget"
    assert not out.exists()
    assert len(ledger.entries()) == 1


def test_what_is_written_says_that_learners_were_declared_to_be_simulated(call, verb, data):
    if verb.name not in ("release", "cohort summarize", "difficulties", "keystrokes statistics"):
        pytest.skip("it writes no statement about its learners, or a mark beside the file")
    call.works(data, data.parent / verb.out, simulated=True)
    written = data.parent / verb.out
    content = (written / "share" / "card.json" if written.is_dir() else written).read_text()
    assert '"simulated": true' in content


def test_a_changed_file_is_no_longer_simulated(call, verb, data, ledger):
    mark_simulated(data)
    with data.open("ab") as file:
        file.write(b"\n")
    done_before = ledger.path.exists()
    try:
        call.works(data, data.parent / verb.out)
    except UnderstudyError:
        pytest.skip("this format does not take a changed file")
    assert not done_before
    assert ledger.entries()[-1].population != SIMULATED_POPULATION


def test_the_reserved_name_is_refused_for_real_learners(call, verb, data, ledger):
    code = call.refuses(UsageError, data, data.parent / verb.out, population="Simulated  Learners")
    assert code == "reserved-population"
    assert not ledger.path.exists()


def test_a_fit_that_fails_is_charged_from_the_first_draw_of_noise_on(call, verb, data, ledger, monkeypatch):
    _break(monkeypatch, verb.patch, RuntimeError("boom"))
    if isinstance(call, ByCommand):
        assert call(data, data.parent / verb.out).returncode == 1
    else:
        with pytest.raises(RuntimeError):
            call(data, data.parent / verb.out)
    kinds = [entry.kind for entry in ledger.entries()]
    assert kinds == ([verb.name] if verb.drawn else [verb.name, TAKEN_BACK])
    assert ledger.balance(normalised(file_population(data))).epsilon == (verb.epsilon if verb.drawn else 0)
    assert not (data.parent / verb.out).exists()


def test_an_interruption_takes_the_charge_back_and_says_so(call, verb, data, ledger, monkeypatch):
    """Nobody has seen anything that depends on the noise: progress shows counts that are public."""
    _break(monkeypatch, verb.patch, KeyboardInterrupt())
    if isinstance(call, ByCommand):
        done = call(data, data.parent / verb.out)
        assert done.returncode == 130
        said = done.stderr
    else:
        with pytest.raises(KeyboardInterrupt) as stop:
            call(data, data.parent / verb.out)
        said = "\n".join(stop.value.__notes__)
    assert "Nothing was written, and the charge was taken back." in said
    assert [entry.kind for entry in ledger.entries()] == [verb.name, TAKEN_BACK]
    assert ledger.balance(normalised(file_population(data))).epsilon == 0
    assert not (data.parent / verb.out).exists()


@with_a_price
def test_an_interruption_between_fit_and_file_is_not_charged(verb, data, ledger, monkeypatch):
    _break(monkeypatch, "tempfile.mkstemp", KeyboardInterrupt())
    _break(monkeypatch, "tempfile.mkdtemp", KeyboardInterrupt())
    assert ByCommand(verb)(data, data.parent / verb.out).returncode == 130
    assert [entry.kind for entry in ledger.entries()] == [verb.name, TAKEN_BACK]
    assert not (data.parent / verb.out).exists()


@with_a_price
def test_the_price_is_stated_before_and_the_charge_after(verb, data):
    done = run(*verb.command(data, data.parent / verb.out), cwd=data.parent)
    whom = normalised(file_population(verb.charged(data, data.parent / verb.out)))
    price = re.search(rf"This costs epsilon 4 of 10 for '{whom}'; (.*) will remain for", done.stderr)
    # Gaussian noise composes to less than the sum, so that more can be asked for than the rest.
    assert price is not None
    assert 6 <= float(price[1]) < 10
    assert f"is spent, and {price[1]} can still be asked for in the same way." in done.stdout
    assert f"Charged epsilon 4 to '{whom}' (card " in done.stdout


@with_a_price
def test_a_person_is_asked_before_anything_is_computed(verb, data, ledger, monkeypatch):
    out = data.parent / verb.out
    monkeypatch.setattr(terminal, "somebody_is_there", lambda: True)
    with monkeypatch.context() as patched:
        _break(patched, verb.patch, AssertionError("computed"))
        patched.setattr("sys.stdin", io.StringIO("n\n"))
        refused = run(*verb.command(data, out), cwd=data.parent)
        assert refused.returncode == 4
        assert "Charge it?" in refused.stderr
        assert "nothing was charged" in refused.stderr
    assert ledger.entries() == []
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    unasked = run(*verb.command(data, out), "--yes", "--json", cwd=data.parent)
    assert (unasked.returncode, "Charge it?" in unasked.stderr) == (0, False)
    assert "This costs epsilon 4 of 10" in unasked.stderr
    json.loads(unasked.stdout)
    assert len(spent(ledger)) == 1


@with_a_price
def test_a_refusal_names_what_is_in_the_way_and_every_way_out(verb, data, ledger):
    ledger.set_limit("learners of this folder", verb.epsilon)
    call, out = ByCommand(verb), data.parent / verb.out
    call.works(data, out)
    (earlier,) = spent(ledger)
    done = run(*verb.command(data, out.with_name(f"second-{verb.out}")), cwd=data.parent)
    assert done.returncode == 4
    assert (
        f"In the way: {verb.name} of {earlier.at[:10]} about '{earlier.population}' (epsilon 4" in done.stderr
    )
    for way in (
        "--population",
        "--other-learners",
        "--reason",
        " --population 'learners of the file ",
        '--limit LIMIT --reason "WHY"',
    ):
        assert way in done.stderr
    assert len(ledger.entries()) == 1
    # The command that is printed raises the limit of these learners, and of no others.
    (way,) = [line.strip() for line in done.stderr.splitlines() if "--limit LIMIT" in line]
    words = shlex.split(way.replace("LIMIT", "12").replace("WHY", "the board agreed"))
    assert run(*words[1:], cwd=data.parent).returncode == 0
    assert ledger.balance(words[words.index("--population") + 1]).limit == 12
    assert ledger.balance("others").limit == verb.epsilon


def test_a_full_disk_is_not_charged(call, verb, data, ledger, monkeypatch):
    _break(monkeypatch, "tempfile.mkstemp", OSError(28, "No space left on device"))
    _break(monkeypatch, "tempfile.mkdtemp", OSError(28, "No space left on device"))
    if isinstance(call, ByCommand):
        assert call(data, data.parent / verb.out).returncode == 5
    else:
        with pytest.raises(OSError, match=r"no room|No space"):
            call(data, data.parent / verb.out)
    assert ledger.balance(normalised(file_population(data))).epsilon == 0
    assert not (data.parent / verb.out).exists()


@with_a_price
def test_an_error_between_the_noise_and_the_file_stays_charged(verb, data, ledger, monkeypatch):
    """Whether it comes may depend on the noisy result, of which one would learn for nothing, again and again."""
    _break(monkeypatch, "tempfile.mkstemp", ValueError("boom"))
    _break(monkeypatch, "tempfile.mkdtemp", ValueError("boom"))
    with pytest.raises(ValueError, match="boom") as caught:
        ByPython(verb)(data, data.parent / verb.out)
    assert "noise was drawn by then" in caught.value.__notes__[-1]
    assert [entry.kind for entry in ledger.entries()] == [verb.name]
    assert not (data.parent / verb.out).exists()


def test_without_a_ledger_that_can_be_written_nothing_is_computed(call, verb, data, monkeypatch):
    _break(monkeypatch, verb.patch, AssertionError("computed"))
    nowhere = data.parent / "absent" / "l.ledger"
    assert call.refuses(MissingError, data, data.parent / verb.out, ledger=nowhere) == "ledger-unwritable"
    damaged = data.parent / "damaged.ledger"
    damaged.write_bytes(b"not a ledger at all, but a file with some length to it")
    assert call.refuses(DataError, data, data.parent / verb.out, ledger=damaged) == "ledger-damaged"


def test_an_old_file_is_not_taken_for_the_result(tmp_path):
    """Interrupted or failing over a file that was there before: what is said is about this release."""
    log = VERBS[0].make(tmp_path)
    out = tmp_path / "out.csv"
    out.write_text("an old file")
    account = Account.open(Spending(), Origin(log), simulated=False)
    with pytest.raises(KeyboardInterrupt) as stop, account.charge("k", "m", _costly(), out=out):
        raise KeyboardInterrupt
    assert stop.value.__notes__ == ["Nothing was written, and the charge was taken back."]
    ended = _failing(account, out, SystemExit(143), out)
    assert "out.csv was written" in ended.__notes__[0]
    full = _failing(account, (out, tmp_path / "b"), OSError("full"), tmp_path / "b")
    assert "stays in the ledger" in full.__notes__[0]


def _failing(account, out, error, written):
    """The error, with its notes, of a release that fails once a file was written."""
    try:
        with account.charge("k", "m", _costly(), out=out):
            written.write_text("a new file, half of it")
            raise error
    except (SystemExit, OSError) as caught:
        return caught


@pytest.mark.parametrize(
    "wrong",
    [
        {"simulated": "no"},
        {"simulated": 1},
        {"population": 3},
        {"ledger": Ledger},
        {"other_learners": "no"},
        {"other_learners": True, "reason": 3},
        {"reason": "for nothing"},
    ],
)
def test_settings_of_another_type_are_refused(wrong, tmp_path):
    with pytest.raises(UsageError):
        Account.open(Spending(**wrong), Origin(tmp_path / "log.csv"), simulated=False)


def test_a_guarantee_takes_nothing_that_was_guessed_from_learners_rows(tmp_path):
    """Every verb opens its account with the origin of its data, so one check is for all of them."""
    guesses = (Guess("what times count", ("unit",)),)
    account = Account.open(Spending(), Origin(tmp_path / "log.csv", guesses=guesses), simulated=False)
    for use in (account.check, lambda guarantee: account.charge("k", "m", guarantee).__enter__()):
        with pytest.raises(UsageError) as refused:
            use(_costly())
        assert (refused.value.code, refused.value.settings) == ("guessed", ("unit",))
    with account.charge("k", "m", Guarantee.none("nothing is claimed")):
        pass


def test_signs_that_cannot_be_seen_do_not_make_another_population():
    assert (
        normalised("klasse \u00e9") == normalised("Klasse e\u0301") == normalised("klasse\u00a0\u200b\u00e9")
    )


def test_opening_a_ledger_leaves_the_mode_of_a_file_alone(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("not a ledger, and long enough to be looked at")
    file.chmod(0o644)
    with pytest.raises(DataError):
        Ledger(file).entries()
    assert file.stat().st_mode & 0o777 == 0o644
    Ledger(tmp_path / "new.ledger").set_limit("a", 1.0)
    assert (tmp_path / "new.ledger").stat().st_mode & 0o777 == 0o600


def _meet(barrier):
    """In a process that stays: where it waits for the other before it spends."""
    global together
    together = barrier


def _spend(arguments, folder):
    """Run a command in this process, as soon as the other process is about to run its own."""
    from understudy.cli.app import run as run_command

    os.chdir(folder)
    together.wait(timeout=300)
    return run_command(arguments)


@pytest.fixture(scope="module")
def two_processes():
    """Made once: to load everything takes longer than to spend."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, context, initializer=_meet, initargs=(context.Barrier(2),)) as pool:
        yield pool


@pytest.mark.parametrize(("options", "usual"), [(StatisticsOptions, 2.0), (SummarizeOptions, 3.0)])
def test_an_epsilon_beside_a_risk_is_seen_also_if_it_is_the_usual_one(options, usual):
    assert options.usual_epsilon == usual
    with pytest.raises(UsageError) as refused:
        options(risk="5 in 100", epsilon=usual).by_risk(lambda tried: _costly())
    assert refused.value.code == "two-epsilons"


@pytest.mark.parametrize("method", ["gru", "gru-dp:epsilon=4"])
def test_a_library_that_is_missing_is_said_before_the_price(method, tmp_path, monkeypatch):
    """And how it is installed: from the source, as the name may be a stranger's elsewhere."""
    monkeypatch.setattr("understudy.core.extras.find_spec", lambda name: None)
    log = VERBS[0].make(tmp_path)
    for verb, out in (("synthesize", "out.csv"), ("release", "bundle")):
        done = run(verb, log, "-o", out, "-m", method, "--public-actions", cwd=tmp_path)
        assert done.returncode == 5
        assert "This costs" not in done.stderr
        assert "in the folder of Understudy's source, run:" in done.stderr
    assert not (tmp_path / FILE_NAME).exists()


@with_a_price
def test_two_at_once_cannot_spend_the_same_budget(verb, data, ledger, two_processes):
    ledger.set_limit(normalised(file_population(data)), verb.epsilon * 1.2)
    outs = [(data.parent / verb.out).with_name(f"{number}-{verb.out}") for number in range(2)]
    spending = [two_processes.submit(_spend, verb.command(data, out), str(data.parent)) for out in outs]
    assert sorted(process.result() for process in spending) == [0, 4]
    assert len(spent(ledger)) == 1
    assert sum(out.exists() for out in outs) == 1


def _break(monkeypatch, place, error):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr(place, fail)


def _costly():
    return Guarantee(1.0)
