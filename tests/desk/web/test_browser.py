"""The desk in a real browser: whether everybody can use every page, and what its little script does.

`UNDERSTUDY_SCREENSHOTS=1 pytest tests/desk/web/test_browser.py` makes the pictures of the docs anew.
"""

from __future__ import annotations

import io
import os
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.desk.support.client import PASSWORD, quick_passwords
from tests.desk.support.pages import DATA, Maker, answer, checks, desk_in_every_state
from understudy.desk.service import answers
from understudy.desk.service.answers import HeldAnswer
from understudy.desk.store import jobs
from understudy.desk.web.app import make_app

pytestmark = [pytest.mark.functional, pytest.mark.browser]

IMAGES = Path(__file__).parents[3] / "docs" / "explanation" / "desk-images"
PICTURED = bool(os.environ.get("UNDERSTUDY_SCREENSHOTS"))
WIDE, NARROW = 1280, 390
GRAVE = ("serious", "critical")


@pytest.fixture(scope="module")
def desks(browser, tmp_path_factory):
    """Made only if there is a browser."""
    with pytest.MonkeyPatch.context() as patch:
        quick_passwords(patch)
        made = desk_in_every_state(tmp_path_factory.mktemp("browser"))
        yield made
    made.desk.close()


@pytest.fixture(scope="module")
def address(desks):
    """The desk on a port of this machine."""
    uvicorn = pytest.importorskip("uvicorn")
    run = uvicorn.Server(uvicorn.Config(make_app(desks.desk), port=0, log_level="warning", access_log=False))
    thread = threading.Thread(target=run.run)
    thread.start()
    while not run.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{run.servers[0].sockets[0].getsockname()[1]}"
    run.should_exit = True
    thread.join()


class Visit:
    """Somebody's browser, with everything that it said and asked for."""

    def __init__(self, browser: Any, address: str, name: str | None, **options: Any) -> None:
        self.address = address
        self.said: list[str] = []
        self.asked: set[str] = set()
        width = options.pop("width", WIDE)
        self.context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.said.append(f"{self.page.url}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.add(request.url.split("/")[2]))
        if name is not None:
            self.go("/sign-in")
            self.page.fill("[name=email]", f"{name.lower()}@school.example")
            self.page.fill("[name=password]", PASSWORD)
            self.page.keyboard.press("Enter")
            self.page.wait_for_url(f"{address}/")

    def go(self, path: str) -> None:
        self.page.goto(self.address + path)


@pytest.fixture
def visit(browser, address):
    made: list[Visit] = []

    def visit_as(name: str | None, **options: Any) -> Visit:
        made.append(Visit(browser, address, name, **options))
        return made[-1]

    yield visit_as
    for one in made:
        one.context.close()


def _pages(desks) -> dict[str | None, list[str]]:
    """Each template in each of its shapes, by who sees it."""
    data, names = desks.filled.data_set, desks.names

    def of(*keys: str) -> list[str]:
        return [f"/requests/{names[key]}" for key in keys]

    return {
        "Rita": [
            *("/", "/requests", "/data", f"/data/{data}", f"/figures/{data}"),
            *of(
                "in review",
                "running",
                "passing",
                "looking",
                "failing",
                "broken",
                "stale",
                "released",
                "feedback",
                "private, in review",
                "private, released",
            ),
        ],
        "Selma": [
            *("/", f"/requests/new?data={data}", "/requests/nothing", f"/data/{desks.declared}"),
            *of("returned", "released", "private, in review", "private, released"),
        ],
        "Corinna": ["/people", "/account"],
        None: [
            "/sign-in",
            *(f"/certificates/{one}" for one in (desks.certificate, desks.private_certificate)),
        ],
    }


# Colours do not depend on the width, so two of the four ways to look see both; all four are for who has time.
LOOKS = ((WIDE, "light"), (NARROW, "dark"), (WIDE, "dark"), (NARROW, "light"))[: 4 if PICTURED else 2]


@pytest.mark.parametrize("who", ["Rita", "Selma", "Corinna", None])
def test_nobody_is_kept_out(desks, visit, who):
    """axe-core finds nothing grave, in light and in dark, wide and narrow; nothing sticks out, nothing is said."""
    axe = pytest.importorskip("axe_playwright_python.base").AXE_SCRIPT
    came = visit(who)
    page = came.page
    for path in _pages(desks)[who]:
        came.go(path)
        # What is folded away has to be right too.
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        page.evaluate(axe)
        for width, scheme in LOOKS:
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
            grave = [
                (one["id"], [node["target"] for node in one["nodes"]])
                for one in found
                if one["impact"] in GRAVE
            ]
            assert grave == [], (path, width, scheme)
            over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert over <= 0, (path, width)
            # A long reason beside it must not squeeze a title into a column of letters.
            titles = page.evaluate("[...document.querySelectorAll('tbody th')].map((one) => one.offsetWidth)")
            assert min(titles, default=60) >= 40, (path, width)
    said = [words for words in came.said if "404" not in words and "Password forms should" not in words]
    assert said == []
    assert came.asked == {came.address.removeprefix("http://")}


def test_the_keyboard_is_enough(desks, visit):
    rita = visit("Rita")
    page = rita.page
    rita.go(f"/requests/{desks.names['in review']}")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert page.evaluate("document.activeElement.getBoundingClientRect().top >= 0"), "it can be seen"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.textContent.trim()"))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", reached[-1]
        if reached[-1] == "Refuse it":
            break
    assert "Approve" in reached
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("Single students")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Refuse"


def test_progress_goes_on_and_the_page_follows(desks, visit):
    make = Maker(desks.filled)
    name = make.approved("Is progress shown while the code runs?")
    lease = make.begun(name)
    rita = visit("Rita")
    rita.go(f"/requests/{name}")
    status = rita.page.locator("[role=status] p")
    assert "Run on the simulated data" in status.inner_text()
    with desks.desk.database.writing() as session:
        jobs.renew_lease(session, lease, done=71, total=100, stage="running on shadows")
    rita.page.get_by_text("running on shadows, about 70 %").wait_for()
    answers.hold(desks.desk, lease, HeldAnswer(make.origin(), answer(), checks=checks(size="fail")))
    rita.page.get_by_text("The answer was not priced: nothing can be released.").wait_for()
    assert rita.said == []


def test_everything_works_without_script(desks, visit):
    make = Maker(desks.filled)
    selma = visit("Selma", java_script_enabled=False)
    page = selma.page
    selma.go("/data")
    page.click(f"text={DATA}")
    page.click("main >> text=Ask a question")
    page.fill("[name=question]", "Can one ask without any script?")
    page.click("text=Save as a draft")
    assert page.locator("[role=status]").inner_text().startswith("Your draft is saved.")
    page.click("main button >> text=Submit")
    name = page.url.split("/")[-1].split("?")[0]
    answers.pass_trial(desks.desk, make.begun(name), make.origin(), answer(), None)
    rita = visit("Rita", java_script_enabled=False)
    rita.go(f"/requests/{name}")
    rita.page.click("text=Approve >> nth=-1")
    assert "this releases nothing" in rita.page.locator("p.done").inner_text()
    assert rita.page.locator("progress").is_visible()
    rita.page.click("text=Cancel the run")
    rita.page.click("summary >> text=Return it")
    rita.page.fill("#return-note", "Please ask for fewer numbers.")
    rita.page.click("text=Return with this note")
    page.reload()
    assert page.locator("blockquote").inner_text() == "Please ask for fewer numbers."


def test_a_file_is_read_into_the_field(desks, visit, tmp_path):
    selma = visit("Selma")
    selma.go(f"/requests/new?data={desks.filled.data_set}")
    (tmp_path / "mine.py").write_text("def analyze(data):\n    return 1\n")
    selma.page.set_input_files("#file", tmp_path / "mine.py")
    # Not wait_for_function: the desk's pages allow no eval, which that needs where it has to wait.
    expect = pytest.importorskip("playwright.sync_api").expect
    expect(selma.page.locator("#code")).to_have_value(re.compile("return 1"))
    assert selma.page.input_value("#file") == ""
    problem = selma.page.locator("#file-problem")
    (tmp_path / "large.py").write_bytes(b"#" * 12_000_000)
    selma.page.set_input_files("#file", tmp_path / "large.py")
    problem.get_by_text("This file has 12 MB; this desk takes 100 kB.").wait_for()
    (tmp_path / "picture.py").write_bytes(b"\x89PNG\x00\xff")
    selma.page.set_input_files("#file", tmp_path / "picture.py")
    problem.get_by_text("This is not a Python file.").wait_for()
    assert "return 1" in selma.page.input_value("#code"), "what stood there stays"


def test_a_certificate_can_be_printed(desks, visit):
    came = visit(None, color_scheme="dark")
    came.go(f"/certificates/{desks.certificate}")
    came.page.emulate_media(media="print")
    assert not came.page.locator("header.top").is_visible()
    assert not came.page.locator("text=Download as JSON").is_visible()
    assert came.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert came.page.evaluate("getComputedStyle(document.querySelector('h1')).color") == "rgb(29, 39, 51)"


@pytest.mark.skipif(not PICTURED, reason="pictures of the docs are made with UNDERSTUDY_SCREENSHOTS=1")
def test_pictures_for_the_docs(desks, visit):
    images = pytest.importorskip("PIL.Image", reason="Pillow makes the pictures small")
    IMAGES.mkdir(parents=True, exist_ok=True)
    data, names = desks.filled.data_set, desks.names
    shots = [
        ("waiting", "Rita", "/", {}, 900),
        ("decision", "Rita", f"/requests/{names['looking']}", {}, 1150),
        ("decision-dark", "Rita", f"/requests/{names['failing']}", {"color_scheme": "dark"}, 900),
        ("decision-phone", "Rita", f"/requests/{names['looking']}", {"width": NARROW}, 1250),
        ("result", "Selma", f"/requests/{names['released']}", {}, 1150),
        ("question", "Selma", f"/requests/new?data={data}", {}, 1100),
        ("certificate", None, f"/certificates/{desks.certificate}", {}, 1100),
    ]
    for picture, who, path, options, height in shots:
        came = visit(who, **options)
        came.go(path)
        came.page.set_viewport_size({"width": options.get("width", WIDE), "height": height})
        taken = images.open(io.BytesIO(came.page.screenshot()))
        taken.quantize(256, kmeans=1).save(IMAGES / f"{picture}.png", optimize=True)
        came.context.close()
    made = {path.stem for path in IMAGES.glob("*.png")}
    assert made == {shot[0] for shot in shots}
