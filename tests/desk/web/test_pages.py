"""Pages of the desk as HTML: what they say to whom, which forms they offer, and what they never show."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from itertools import product

import pytest

from tests.desk.support.client import Browser, browser_of, give_password, quick_passwords
from tests.desk.support.fixtures import PRIVATE, fill
from tests.desk.support.pages import (
    CODE,
    POLICY,
    SECRET_WHY,
    Maker,
    answer,
    checks,
    desk_in_every_state,
    prices,
)
from understudy.desk.domain.certificate import verify
from understudy.desk.domain.results import Results, Table
from understudy.desk.private import Schema
from understudy.desk.service import answers, feedback, private_answers, releases, requests, views
from understudy.desk.service.answers import HeldAnswer
from understudy.desk.service.views import HeldOutput
from understudy.desk.store.tables import ReleaseRow, now
from understudy.desk.web import pages
from understudy.desk.web.advice import advise, bars
from understudy.desk.web.app import make_app
from understudy.desk.web.pages import highlighted
from understudy.desk.web.result_view import result_groups
from understudy.desk.web.wording import PRECISIONS, everything
from understudy.errors import RefusedError

pytestmark = pytest.mark.functional

HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)>"
# Words that only reviewers read.
INSIDE = (
    SECRET_WHY,
    "ZeroDivisionError",
    "Price against the limits",
    "Behind these prices",
    "As it would leave",
)
HIDDEN_STATES = ("approved", "running", "output held", "being released")


@pytest.fixture(scope="module")
def desks(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        quick_passwords(patch)
        made = desk_in_every_state(tmp_path_factory.mktemp("pages"))
        yield made
    made.desk.close()


@pytest.fixture(scope="module")
def people(desks):
    """Everybody's browser, signed in."""
    app = make_app(desks.desk)
    found = {person.name: browser_of(app, person) for person in desks.filled.people}
    return {**found, None: Browser(app)}


class Read(HTMLParser):
    """What a page holds, as far as rules can be checked without a browser."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.tables_without_caption = 0
        self._in_table: list[bool] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "table":
            self._in_table.append(False)
        elif tag == "caption":
            self._in_table[-1] = True

    def handle_endtag(self, tag):
        if tag == "table":
            self.tables_without_caption += not self._in_table.pop()

    def of(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def posts(self):
        return {form["action"] for form in self.of("form") if form.get("method") == "post"}


def _pages(desks):
    data, names = desks.filled.data_set, desks.names
    everybody = ["/", "/requests", "/data", f"/data/{data}", f"/requests/new?data={data}", "/account"]
    for path in everybody:
        for who in ("Corinna", "Rita", "Selma"):
            yield who, path
    for name in names.values():
        if name != names["draft"]:
            yield "Rita", f"/requests/{name}"
    for line in views.requests(desks.desk, desks.filled.researcher):
        yield "Selma", f"/requests/{line.name}"
    yield from (("Selma", f"/requests/{names[key]}/edit") for key in ("draft", "returned"))
    yield "Rita", f"/figures/{data}"
    yield from ((None, path) for path in ("/sign-in", f"/certificates/{desks.certificate}"))


def test_every_page_keeps_the_rules(desks, people):
    for who, path in _pages(desks):
        got = people[who].get(path)
        assert got.status_code == 200, (who, path)
        read = Read(got.text)
        assert len(read.of("h1")) == 1, path
        assert read.of("html")[0]["lang"] == "en"
        assert read.of("a")[0]["href"] == "#content"
        assert read.tables_without_caption == 0, path
        ids = [one["id"] for _, one in read.tags if "id" in one]
        assert len(ids) == len(set(ids)), path
        labelled = {label.get("for") for label in read.of("label")}
        for tag, one in read.tags:
            # The content-security policy would drop these without a word.
            assert "style" not in one, (path, tag)
            assert not any(name.startswith("on") for name in one), (path, tag)
            if tag in ("textarea", "select") or (tag == "input" and one.get("type") != "hidden"):
                assert one.get("id") in labelled or one.get("aria-label"), (path, one)
        assert len(read.of("script")) == 1
        assert "style" not in {tag for tag, _ in read.tags}
        tokens = [one for one in read.of("input") if one.get("name") == "csrf"]
        assert len(tokens) == len(
            read.posts and [one for one in read.of("form") if one.get("method") == "post"]
        )


def test_a_researcher_sees_nothing_that_depends_on_the_data(desks, people):
    selma = people["Selma"]
    paths = ["/", "/requests", *(f"/requests/{name}" for name in desks.names.values())]
    pages = {path: selma.get(path).text for path in paths}
    for path, text in pages.items():
        for words in INSIDE:
            assert words not in text, (path, words)
    # From approval to release all requests of a researcher look the same.
    keys = ("running", "passing", "broken", "releasing")
    bare = {_without_names(desks, pages[f"/requests/{desks.names[key]}"]) for key in keys}
    assert len(bare) == 1
    assert "Being answered" in bare.pop()
    for key in ("running", "passing"):
        assert selma.get(f"/requests/{desks.names[key]}/progress").text.strip() == ""


def _without_names(desks, text):
    question = re.search(r"<h1>(.*?)</h1>", text)[1]
    return re.sub("[0-9a-f]{16}", "", text.replace(question, ""))


def test_others_requests_and_drafts_are_nobodys_business(desks, people):
    assert people["Samuel"].get(f"/requests/{desks.names['released']}").status_code == 404
    assert people["Rita"].get("/requests").text.count(desks.names["draft"]) == 0
    # A reviewer's own request is that of a researcher: no price, no checks.
    own = people["Rita"].get(f"/requests/{desks.names['reviewers own']}").text
    assert "Price against the limits" not in own
    assert "How does it compare with the synthetic data?" in own
    assert "Price against the limits" in people["Ravi"].get(f"/requests/{desks.names['reviewers own']}").text


@pytest.mark.parametrize(
    ("key", "line", "may_release"),
    [
        ("passing", "All 11 checks pass; the price is within the limits.", True),
        ("looking", "2 checks ask for review; the price is within the limits.", True),
        (
            "failing",
            "2 checks failed and 1 check asks for review; mu and advantage would be over the limit.",
            False,
        ),
        (
            "broken",
            "The code gave no result on the simulated data that stands in for the real data: nothing can be released.",
            False,
        ),
        ("stale", "Run it again before you decide: the price is out of date.", False),
    ],
)
def test_what_the_desk_advises_stands_first(desks, people, key, line, may_release):
    name = desks.names[key]
    text = people["Rita"].get(f"/requests/{name}").text
    assert line in unescape(text)
    assert text.index("advice") < text.index('id="history"')
    assert (f"/requests/{name}/release" in Read(text).posts) is may_release


def test_what_cannot_be_released_goes_back_first(desks, people):
    text = people["Rita"].get(f"/requests/{desks.names['failing']}").text
    decide = text[text.index('id="decide"') :]
    assert "fewer numbers, more robust methods, larger groups" in decide
    assert decide.index("Return it to the researcher</button>") < decide.index("Run and price again")
    assert "The same code on the same data gives the same answer and the same price." in decide
    assert text.index('id="output"') < text.index('id="decide"') < text.index('id="code"')


def test_what_everything_counts_is_said():
    assert "Nothing was released before, but stage one" in everything(0, stage_one=True)
    assert "no stage one is registered" in everything(0, stage_one=False)
    assert "2 requests released before, those being released included" in everything(2, stage_one=True)
    assert everything(1, stage_one=False).endswith("no stage one is registered.")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e-05, "0.00001"),
        (-2.5e-7, "−0.00000025"),
        (3e-12, "3 × 10⁻¹²"),
        (1.5e12, "1500000000000"),
        (0.34, "0.34"),
    ],
)
def test_numbers_are_written_as_people_write_them(value, text):
    assert pages._cell(value) == text


def test_only_what_can_be_done_is_offered(desks, people):
    for person in (desks.filled.reviewer, desks.filled.researcher):
        for key, name in desks.names.items():
            got = people[person.name].get(f"/requests/{name}")
            if got.status_code != 200:
                continue
            view = views.request(desks.desk, person, name)
            wanted = {action.replace(" ", "-") for action in view.actions} - {"edit"}
            if view.held is not None and not view.held.verdict.may_release:
                wanted.discard("release")
            offered = {post.rsplit("/", 1)[1] for post in Read(got.text).posts} - {"sign-out"}
            assert offered == wanted, (person.name, key)
            assert (f"/requests/{name}/edit" in got.text) is ("edit" in view.actions)


def test_a_reviewer_can_decide_from_the_page(desks, people):
    text = unescape(people["Rita"].get(f"/requests/{desks.names['looking']}").text)
    for words in (
        "1.21</strong> (1.06 to 1.39), limit 1.50",
        "0.42</strong> (0.38 to 0.46), limit 0.50",
        "measured lower bound against an attacker who does not know the other learners; not a guarantee",
        "published, not a bound",
        "what chance alone gives",
        "Regret",
        SECRET_WHY,
        "groupby",
        "Methods that react to single learners",
        "7 <strong>(too few)</strong>",
        "Evening work went with higher achievement (rho 0.30).",
    ):
        assert words in text, words
    assert "guarantee" not in text.replace("not a guarantee", "").replace("stage one alone guarantees", "")
    first = text.index('class="verdict"')
    assert "review" in text[first : first + 200], "the gravest check first"


def test_the_list_by_state(desks, people):
    text = people["Rita"].get("/requests?state=output held").text
    shown_names = [name for key, name in desks.names.items() if f'href="/requests/{name}"' in text]
    held = ("passing", "looking", "failing", "broken", "stale")
    assert sorted(shown_names) == sorted(desks.names[key] for key in held)
    assert "No request" in people["Rita"].get("/requests?state=<b>").text


def test_data_and_figures(desks, people):
    data = desks.filled.data_set
    text = people["Selma"].get(f"/data/{data}").text
    assert "at least 10 learners, counted by the desk itself" in text
    assert "evening_01" in text
    assert "Numbers released so far" not in text
    assert "Numbers released so far" in people["Rita"].get(f"/data/{data}").text
    got = people["Selma"].get(f"/data/{data}/synthetic")
    assert got.headers["content-disposition"] == f'attachment; filename="synthetic-{data}.csv"'
    for path in (f"/figures/{data}", f"/figures/{data}/5.svg"):
        assert people["Selma"].get(path).status_code == 403
    text = people["Rita"].get(f"/figures/{data}").text
    assert "Rita" not in text.split("<main")[1], "her own request is not for her eyes"
    assert "Rita" in people["Ravi"].get(f"/figures/{data}").text.split("<main")[1]
    for key in ("5", "6", "7", "7-researchers", "8"):
        assert f"/figures/{data}/{key}.svg" in text
    drawn = people["Rita"].get(f"/figures/{data}/5.svg?narrow=1")
    assert drawn.headers["content-type"] == "image/svg+xml"
    assert drawn.text.startswith("<svg")
    assert people["Rita"].get(f"/figures/{data}/9.svg").status_code == 404


def test_a_certificate_for_anybody(desks, people):
    number = desks.certificate
    text = people[None].get(f"/certificates/{number}").text
    assert "Signed by this desk, and unchanged" in text
    assert "does not cover reconstruction" in text
    assert people[None].get("/certificates/none").status_code == 404
    document = people[None].get(f"/certificates/{number}.json").json()
    verify(document)
    assert document["certificate"] == number
    with desks.desk.database.writing() as session:
        row = session.query(ReleaseRow).filter_by(certificate=number).one()
        row.document = {**row.document, "question": "Something else?"}
    try:
        changed = people[None].get(f"/certificates/{number}").text
        assert "Not as this desk signed it" in changed
        assert "and unchanged" not in changed
    finally:
        with desks.desk.database.writing() as session:
            session.query(ReleaseRow).filter_by(certificate=number).one().document = document


@pytest.fixture
def small_desk(tmp_path, monkeypatch):
    """A desk of its own, for what changes something."""
    quick_passwords(monkeypatch)
    filled = fill(tmp_path, policy=POLICY)
    give_password(filled.desk, filled.researcher, filled.reviewer)
    app = make_app(filled.desk)
    yield Maker(filled), browser_of(app, filled.researcher), browser_of(app, filled.reviewer)
    filled.desk.close()


def test_from_question_to_feedback_by_forms(small_desk):
    make, selma, rita = small_desk
    new = "/requests/new"
    form = {"data": make.filled.data_set, "kind": "trends", "shown": "It fell.", "code": CODE}
    template = selma.get(f"{new}?data={make.filled.data_set}").text
    assert "def analyze(data)" in unescape(template)
    wrong = selma.fill_in(new, question="Why?", **form)
    assert wrong.status_code == 400
    assert "The research question is too short: write a sentence." in wrong.text
    assert "It fell." in wrong.text, "what was typed is not lost"
    drafted = selma.fill_in(new, question="Does work fall before the exam?", then="submit", **form)
    assert drafted.status_code == 303
    address = drafted.headers["location"].removesuffix("?done=submitted")
    name = address.rsplit("/", 1)[1]
    assert (
        "Submitted. The code runs on the synthetic data first." in selma.get(f"{address}?done=submitted").text
    )
    assert HOSTILE not in selma.get(f"{address}?done={HOSTILE}").text
    _passed(make, name)
    assert rita.fill_in(f"{address}/refuse", note="no").status_code == 400
    assert rita.fill_in(f"{address}/approve").headers["location"] == f"{address}?done=approved"
    _held(make, name, checks=checks(extremes="review"))
    refused = rita.fill_in(f"{address}/release", reason="because")
    assert refused.status_code == 409
    assert "Some checks ask for review, and no reason was written." in refused.text
    assert ">because</textarea>" in refused.text
    assert rita.fill_in(f"{address}/release", reason="Thirty learners are behind it.").status_code == 303
    twice = rita.fill_in(f"{address}/release", reason="Thirty learners are behind it.")
    assert twice.status_code == 409
    assert "This was released already; nothing was done twice." in twice.text
    assert "The released result" not in selma.get(address).text, "until the ledger is charged"
    releases.hand_out(make.desk, make.lease(name))
    text = selma.get(address).text
    assert "The released result" in text
    assert (
        selma.get(views.request(make.desk, make.filled.researcher, name).certificate and "/").status_code
        == 200
    )
    assert selma.fill_in(f"{address}/report", precision="0.7", words="so so").status_code == 400
    assert selma.fill_in(f"{address}/report", precision="1", words="All as expected.").status_code == 303
    assert (
        "most held on the simulated data that stands in for the real data (1 of 1)."
        in selma.get(address).text
    )
    assert "All as expected." in rita.get(address).text


def _passed(make, name):
    answers.pass_trial(make.desk, make.begun(name), make.origin(), answer(-0.04), None)


def _held(make, name, **changes):
    given = {"results": answer(), "checks": checks(), "prices": prices().to_json(), **changes}
    answers.hold(make.desk, make.begun(name), HeldAnswer(make.origin(), **given))


def test_a_file_takes_the_place_of_the_field_and_is_bounded(small_desk):
    make, selma, _ = small_desk
    form = {
        "csrf": selma.csrf,
        "data": make.filled.data_set,
        "question": "Is a file taken?",
        "code": "written",
    }
    sent = "def analyze(data):\r\n    return 1\r\n"
    got = selma.post("/requests/new", data=form, files={"file": ("a.py", sent.encode(), "text/x-python")})
    name = got.headers["location"].split("/")[-1].split("?")[0]
    assert views.request(make.desk, make.filled.researcher, name).code == sent.replace("\r\n", "\n")
    for content, words in (
        (b"\xff\xfe\x00", "This is not a Python file."),
        (b"#" * 100_001, "This file has more than the 100 kB that this desk takes."),
    ):
        got = selma.post("/requests/new", data=form, files={"file": ("a.py", content, "text/x-python")})
        assert got.status_code == 400
        assert words in got.text


def test_what_people_and_code_write_stays_text(small_desk):
    make, selma, rita = small_desk
    desk, selma_herself = make.desk, make.filled.researcher
    given = Results(
        {HOSTILE: 1.5, "words": HOSTILE, "x": {HOSTILE: {"y": 2}}},
        {HOSTILE: Table((HOSTILE, "n"), ((HOSTILE, 3), (None, 4.5)))},
    )
    code = f'"""{HOSTILE}"""\n\n\ndef analyze(data):\n    return "</pre>{HOSTILE}"\n'
    name = requests.create(
        desk,
        selma_herself,
        make.filled.data_set,
        question=f"What is {HOSTILE} about?",
        code=code,
        kind=HOSTILE[:60],
        shown=HOSTILE,
    )
    pages = [selma.get(path).text for path in ("/", f"/requests/{name}", f"/requests/{name}/edit")]
    requests.submit(desk, selma_herself, name)
    _passed(make, name)
    requests.send_back(desk, make.filled.reviewer, name, f"Change {HOSTILE} please.")
    pages += [selma.get("/").text, selma.get(f"/requests/{name}").text]
    requests.edit(desk, selma_herself, name, question=f"What is {HOSTILE} about?", code=code)
    requests.submit(desk, selma_herself, name)
    _passed(make, name)
    requests.approve(desk, make.filled.reviewer, name)
    _held(make, name, results=given, checks=checks(size="review"))
    # Held for a run of other code than the fixture's: the certificate carries it.
    pages.append(rita.get(f"/requests/{name}").text)
    for text in pages:
        assert "<script>" not in text
        assert "<img" not in text
        assert "onerror=alert(1)&gt;" in text


def test_highlighting_changes_no_letter():
    for code in (
        CODE,
        "x = '''a\n\n<b>&amp;\n'''\n",
        "broken = (\n",
        "a = 1",
        "\tif x < 2 and y: pass  # ü\n\n",
    ):
        text = unescape(re.sub("<[^>]*>", "", highlighted(code)))
        assert text == (code if code.endswith("\n") else code + "\n")
    assert '<span class="k">def</span> <span class="nf">analyze</span>' in highlighted(CODE)
    assert 'id="line-19"' in highlighted(CODE)


def test_a_plot_given_as_numbers_is_drawn_and_nothing_else_is():
    drawn = {group.title: group.plot for group in result_groups(answer())}
    assert drawn["growth"].points[0] == (0, 50)
    assert drawn["growth"].points[-1] == (100, 0)
    assert drawn["minutes by group"] is None
    for odd in (
        {"x": [1, 2], "y": [1, 2]},
        {"x": [1, 2, 3], "y": [1, 2]},
        {"x": [1, "a", 3], "y": [1, 2, 3]},
        {"x": [1, 2, 3], "y": [1, 2, 3], "z": 1},
    ):
        assert result_groups(Results({"plot": odd}))[0].plot is None
    flat = result_groups(Results({"plot": {"x": [1, 1, 1], "y": [2.0, 2.0, 2.0]}}))[0].plot
    assert flat is not None


def test_each_number_stands_beside_its_own_trial_and_learners():
    support = {name: place for place, name in enumerate(answer().numbers, 1)}
    groups = result_groups(answer(), trial=answer(-0.04), support=support, minimum=4)
    cells = {cell.name: cell for group in groups for row in group.rows for cell in row if cell.name}
    assert cells.keys() == {name for name in support if not name.endswith("number of rows")}
    for name, cell in cells.items():
        assert cell.value == answer().numbers[name]
        assert cell.trial == answer(-0.04).numbers[name]
        assert cell.learners == support[name]
        assert cell.few is (support[name] < 4)


def test_missing_numbers_and_yes_or_no_count_as_numbers():
    given = Results({"held": True, "missing": None}, {"t": Table(("a", "n"), (("x", None), (None, 2)))})
    support = dict.fromkeys(given.numbers, 5)
    cells = [cell for group in result_groups(given, support=support) for row in group.rows for cell in row]
    assert {cell.name for cell in cells if cell.learners == 5} == {
        *("held", "missing", "t / n / row 1", "t / a / row 2", "t / n / row 2")
    }
    assert [cell.value for cell in cells if cell.name][:2] == [True, None]


def test_the_advice_is_what_the_policy_will_say():
    verdicts = ("pass", "review", "fail")
    reason = "many learners stand behind it"
    for learners, extremes, mu, advantage in product(verdicts, verdicts, (1.0, 1.5), (0.3, 0.48)):
        found = checks(learners=learners, extremes=extremes)
        priced = prices(mu, advantage).to_json()
        verdict = POLICY.verdict(found, priced)
        said = advise(HeldOutput(answer(), "", found, {}, priced, (), (), verdict, now()))
        ends = {measure: priced["together"][measure]["high"] for measure in ("mu", "advantage")}
        over = ends["mu"] > POLICY.mu_limit or ends["advantage"] > POLICY.advantage_limit
        # The policy of these tests lets reviewers release against `extremes` alone.
        assert _allowed(verdict, reason) is not (over or learners == "fail")
        assert _allowed(verdict, reason) is verdict.may_release
        assert (said.next == "release") is verdict.may_release
        assert verdict.needs_reason is not (_allowed(verdict, "") and verdict.may_release)
        assert any(one.over for one in bars(priced, POLICY)["mu"]) is (ends["mu"] > POLICY.mu_limit)


def _allowed(verdict, reason):
    try:
        verdict.enforce(reason)
    except RefusedError:
        return False
    return True


def test_precision_words_are_those_that_the_service_takes():
    assert {float(value) for value, _ in PRECISIONS} == set(feedback.PRECISIONS)


def test_private_questions_are_shown_in_words_and_their_answers_with_intervals(desks, people):
    review = people["Rita"].get(f"/requests/{desks.names['private, in review']}").text
    words = "What is the mean of evening_01 (cut to 0 to 600) in each group of achievement?"
    assert words in review
    assert "there is no second decision" in unescape(review)
    assert "Approve, answer and release" in review
    assert "Approving lets the code run" not in review
    owner = unescape(people["Selma"].get(f"/requests/{desks.names['private, in review']}").text)
    assert words in owner
    assert "To be expected on the simulated data" in owner
    assert "The answers from the synthetic data, with as much noise" in owner
    released = unescape(people["Selma"].get(f"/requests/{desks.names['private, released']}").text)
    assert "The released answers" in released
    assert "95 % interval" in released
    assert "Welch's t: statistic" in released


def test_intervals_that_are_too_wide_are_said_to_be(desks, people):
    """Thirty-six learners are too few for an epsilon of a tenth."""
    code = PRIVATE.replace("0.5", "0.01")
    name = Maker(desks.filled).answered("What do few learners tell?", desks.declared, code)
    page = unescape(people["Selma"].get(f"/requests/{name}").text)
    assert "too wide to be of use" in page
    assert "would be enough" in page


def test_the_certificate_of_private_answers_states_the_guarantee(desks, people):
    page = unescape(people[None].get(f"/certificates/{desks.private_certificate}").text)
    assert "Signed by this desk, and unchanged" in page
    for words in ("a learner with all their rows", "replace one learner", "discrete Gaussian"):
        assert words in page
    assert "Public, and covered by no guarantee" in page
    assert "Nothing here is a guarantee" not in page
    assert "Price in privacy" not in page


def test_the_public_schema_is_on_the_page_and_can_be_downloaded(desks, people):
    page = unescape(people["Selma"].get(f"/data/{desks.declared}").text)
    assert "number, 0 to 600 minutes" in page
    assert "category: low, average, high, other" in page
    assert re.search(r"5 for all of them together, of which [0-9.]+ is spent", page)
    given = people["Selma"].get(f"/data/{desks.declared}/schema.json")
    assert Schema.from_json(given.json()).categories("achievement") == ("low", "average", "high")
    assert people["Selma"].get(f"/data/{desks.filled.data_set}/schema.json").status_code == 404
    form = people["Selma"].get(f"/requests/new?data={desks.declared}&private=true").text
    assert "EPSILON = 1.0" in unescape(form)


def test_a_reviewer_lets_private_questions_be_answered_on_the_page(desks, people):
    name = Maker(desks.filled).asked("What is the mean in the evening?", desks.declared)
    assert people["Rita"].fill_in(f"/requests/{name}/approve").status_code == 409
    given = people["Rita"].fill_in(f"/requests/{name}/answer")
    assert given.headers["location"] == f"/requests/{name}?done=answered"
    private_answers.hand_out(desks.desk, Maker(desks.filled).lease(name))
    assert "The released answers" in people["Selma"].get(f"/requests/{name}").text
