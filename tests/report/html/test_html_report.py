"""The report, as text and in a real browser."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape

from fltheory import theorems
from fltheory.report.html.html_report import (
    HOW_TO_CITE,
    HOW_TO_CORRECT,
    certificates_in,
    headline,
    html_report,
)
from fltheory.report.html.report_view import theorems_of
from tests.report.report_cases import ATTACK, WITNESSES, case

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(
    BROWSER is None or DRIVER is None, reason="chromium and chromedriver are not installed"
)


@cache
def kept_page() -> str:
    """Return the page of what is in `report_cases`, made when a test first asks."""
    return html_report(*case())


def n_rows() -> int:
    return len(case()[1])


def test_the_same_arguments_give_the_same_text() -> None:
    assert html_report(*case()) == kept_page()


def test_the_text_does_not_depend_on_the_order_of_hashes(fltheory_command, tmp_path: Path) -> None:
    here, there = tmp_path / "here.html", tmp_path / "there.html"
    words = ("verify", "ca-fed/1", "--html")
    other = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    subprocess.run(
        [sys.executable, "-m", "fltheory", *words, there],
        env=os.environ | {"PYTHONHASHSEED": other},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    assert fltheory_command(*words, here)[0] == 0
    assert here.read_bytes() == there.read_bytes()


def test_it_needs_nothing_else() -> None:
    assert re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', kept_page()) == []
    assert "@import" not in kept_page()
    assert "url(" not in kept_page()
    assert "default-src 'none'" in kept_page()


def test_nothing_is_let_through_unescaped() -> None:
    assert ATTACK in case()[1][-2].verdict.detail
    assert "<img" not in kept_page()
    assert kept_page().count("<script>") == 1
    assert "window.attacked" in kept_page()


def test_it_says_what_made_it() -> None:
    made_by = case()[3]
    for name, value in made_by.as_dict().items():
        assert f"<dt>{name.replace('_', ' ')}</dt><dd>{value}</dd>" in kept_page()


def test_it_says_how_to_cite_and_to_correct() -> None:
    text = re.sub(r"</?code>", "`", kept_page())
    for sentence in (HOW_TO_CITE, HOW_TO_CORRECT):
        assert f"<p>{escape(sentence)}</p>" in text


def test_a_bound_that_is_audited_has_how_many_times_the_best_provable_it_is() -> None:
    """Khaled's Theorem 1 at one local step: 37 times, as on the page of bounds for every loss."""
    made_by = case()[3]
    column = ">over the best provable</th>"
    assert column not in html_report([theorems.get("local-gd/lemma-1")], [], [], made_by)
    page = html_report(theorems.registered("local-gd/1"), [], [], made_by)
    assert column in page
    cells = re.findall(
        r'data-value="([^"]*)" data-label="over the best provable"[^>]*>(.*?)<', page
    )
    assert [text for _, text in cells] == ["", "37 times"]
    assert [value[:4] for value, _ in cells] == ["", "37.3"]


def test_the_certificate_comes_along() -> None:
    encoded = re.findall(
        r'download="sa-fl-5.json" href="data:application/json;base64,(.*?)"', kept_page()
    )
    found = json.loads(base64.b64decode(encoded[0]))
    assert found == json.loads((WITNESSES / "sa-fl-5.json").read_text(encoding="utf-8"))
    assert "fltheory certify" in kept_page()


def test_every_hypothesis_of_a_witness_has_both_sides() -> None:
    refuted = kept_page().partition('id="refuted"')[2].partition('id="overview"')[0]
    witnesses = refuted.split('<section class="witness')[1:]
    assert len(witnesses) > 2
    for witness in witnesses:
        assert 'class="checks"' in witness
        assert ("<polyline" in witness) == ("the first violated bound" in witness)


def test_a_page_on_which_nothing_is_refuted_has_no_heading_of_refutations() -> None:
    made_by = case()[3]
    page = html_report([theorems.get("local-gd/lemma-1")], [], [], made_by)
    assert 'href="#refuted"' not in page
    assert 'id="refuted"' not in page
    assert "No regime, and no certificate at hand, refutes any of these statements." in page


def test_certificates_of_other_statements_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text("[]")
    (tmp_path / "other.json").write_text('{"theorem": "t/9", "reading": "printed"}')
    assert certificates_in(tmp_path, case()[0]) == ()
    with pytest.raises(ValueError, match="witnesses must be an existing folder"):
        certificates_in(tmp_path / "nowhere", case()[0])


def test_certificates_of_another_kind_are_checked_too() -> None:
    statement = theorems.get("fedau/3-step")
    (view,) = certificates_in(WITNESSES.parent / "certificates", [statement])
    assert (view.theorem, view.reading) == ("fedau/3-step", "printed")
    assert view.left > view.right


def test_a_damaged_certificate_is_refused(tmp_path: Path) -> None:
    text = (WITNESSES / "sa-fl-5.json").read_text(encoding="utf-8")
    bound = json.loads(text)["bound"]
    (tmp_path / "one.json").write_text(text.replace(f'"bound": "{bound}"', '"bound": "-1"'))
    with pytest.raises(ValueError, match="bound: must be"):
        certificates_in(tmp_path, case()[0])


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        (
            slice(None),
            "1 of 2 printed theorems, corollaries and lemmas refuted: 1 for a misprint. "
            "2 of 3 other printed sentences (remark) refuted.",
        ),
        (
            slice(0, 1),
            "1 of 1 printed theorems, corollaries and lemmas refuted: 1 for a misprint.",
        ),
        (
            slice(2, 3),
            "sa-fl/corollary-2 holds on 0 of 1 settings; does not apply to 1.",
        ),
        (slice(1, 2), "0 of 1 readings are refuted."),
    ],
)
def test_the_headline_counts_printed_statements(chosen: slice, sentence: str) -> None:
    statements, cells, certificates, _ = case()
    assert headline(theorems_of(statements[chosen], cells, certificates)) == sentence


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium without a window, on the page."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    page = tmp_path_factory.mktemp("report") / "report.html"
    page.write_text(kept_page(), encoding="utf-8")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.address = page.as_uri()
    yield driver
    driver.quit()


@pytest.fixture
def page(browser: Any) -> Any:
    """The page, freshly loaded on a desktop in light colours."""
    look(browser, 1280, 900)
    browser.get(browser.address)
    return browser


def look(browser: Any, width: int, height: int, **features: str) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {
            "media": features.pop("media", ""),
            "features": [
                {"name": "prefers-reduced-motion", "value": "reduce"},
                *({"name": n.replace("_", "-"), "value": v} for n, v in features.items()),
            ],
        },
    )


def first_table(page: Any) -> Any:
    return page.find_element("css selector", "#sa-fl-5-printed table")


def column(page: Any, place: int) -> list[str]:
    return page.execute_script(
        "return [...arguments[0].tBodies[0].rows].map(r => r.cells[arguments[1]].dataset.value)",
        first_table(page),
        place,
    )


def visible_rows(page: Any) -> int:
    return page.execute_script(
        "return [...document.querySelectorAll('tr[data-verdict]')]"
        ".filter(r => r.getClientRects().length).length"
    )


def count(page: Any) -> str:
    return page.find_element("css selector", ".count").text


@needs_browser
def test_it_loads_quietly_and_alone(page: Any) -> None:
    assert page.get_log("browser") == []
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert page.execute_script("return window.attacked") is None


@needs_browser
@pytest.mark.parametrize("size", [(1280, 900), (390, 844)])
def test_what_is_refuted_is_on_the_first_screen(page: Any, size: tuple[int, int]) -> None:
    look(page, *size)
    page.get(page.address)
    top = page.execute_script(
        "return document.querySelector('.finding h3').getBoundingClientRect().top"
    )
    assert 0 < top < size[1]
    assert (
        "1 of 2 printed theorems, corollaries and lemmas refuted"
        in page.find_element("tag name", "h1").text
    )
    section = page.find_element("css selector", "main > section")
    assert section.get_attribute("id") == "refuted"
    assert "sa-fl/5" in section.find_element("tag name", "article").text


@needs_browser
def test_formulas_are_typeset(page: Any) -> None:
    """A fraction is higher than a letter in it, and an index lies below its letter."""
    heights = page.execute_script(
        """
        const claim = document.querySelector('#sa-fl-5-printed .claim');
        const box = (selector) => claim.querySelector(selector).getBoundingClientRect();
        return [box('mfrac').height / box('mfrac mi').height,
                box('msub > :last-child').bottom - box('msub > :first-child').bottom,
                [...document.querySelectorAll('math')].filter(
                  m => m.getClientRects().length && m.getBoundingClientRect().width < 3).length];
        """
    )
    assert heights[0] > 1.5
    assert heights[1] > 0
    assert heights[2] == 0


@needs_browser
def test_headings_sort_up_and_down(page: Any) -> None:
    heading = first_table(page).find_elements("css selector", "th")[3]
    assert heading.get_attribute("aria-sort") is None
    before = column(page, 3)
    assert before.count("") == 1, "one regime has no bound, and so no ratio"
    numbers = sorted(float(value) for value in before if value)
    assert [float(v) for v in before if v] != numbers, "or sorting shows nothing"
    for direction, expected in (("ascending", numbers), ("descending", numbers[::-1])):
        heading.find_element("tag name", "button").click()
        assert heading.get_attribute("aria-sort") == direction
        assert [float(value) for value in column(page, 3)[:-1]] == expected
        assert column(page, 3)[-1] == ""
    regime = first_table(page).find_elements("css selector", "th")[0]
    regime.find_element("tag name", "button").click()
    assert column(page, 0) == ["different Hessians", "i.i.d.", "m = 1", "q = 0"]
    assert heading.get_attribute("aria-sort") is None


@needs_browser
def test_filters_leave_what_matches(page: Any) -> None:
    assert count(page) == f"{n_rows()} of {n_rows()} regimes"
    holds = sum(cell.verdict.outcome.name == "HOLDS" for cell in case()[1])
    for verdict in ("REFUTED", "UNDECIDED", "INAPPLICABLE"):
        page.find_element("css selector", f'input[value="{verdict}"]').click()
    assert visible_rows(page) == holds > 0
    assert count(page) == f"{holds} of {n_rows()} regimes"
    assert not page.find_element("id", "sa-fl-5-printed").is_displayed()
    search = page.find_element("css selector", "input[type=search]")
    search.send_keys("Appendix-D clusters")
    assert visible_rows(page) == 1
    search.send_keys(" nowhere")
    assert visible_rows(page) == 0
    assert page.find_element("css selector", ".empty").is_displayed()
    page.find_element("css selector", "button[type=reset]").click()
    assert count(page) == f"{n_rows()} of {n_rows()} regimes"
    assert not page.find_element("css selector", ".empty").is_displayed()


@needs_browser
@pytest.mark.parametrize(
    ("name", "value", "left"), [("reading", "derived", 3), ("grade", "rational", 1)]
)
def test_choices_filter_too(page: Any, name: str, value: str, left: int) -> None:
    page.find_element("css selector", f"select[name={name}]").send_keys(value)
    assert visible_rows(page) == left
    overview = page.find_elements("css selector", ".overview tbody tr")
    assert sum(row.is_displayed() for row in overview) == 1


@needs_browser
def test_a_link_into_what_is_filtered_away_brings_it_back(page: Any) -> None:
    page.find_element("css selector", "input[type=search]").send_keys("appendix-d")
    page.execute_script("location.hash = 'sa-fl-5-printed'")
    page.execute_async_script("setTimeout(arguments[0], 100)")
    assert page.find_element("id", "sa-fl-5-printed").is_displayed()


@needs_browser
def test_everything_works_from_the_keyboard(page: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    def press(key: str) -> Any:
        ActionChains(page).send_keys(key).perform()
        return page.switch_to.active_element

    assert press(Keys.TAB).get_attribute("class") == "skip"
    reached, unseen = [], []
    for _ in range(200):
        element = press(Keys.TAB)
        if element.tag_name == "body":
            break
        reached.append(element.get_attribute("outerHTML"))
        style = page.execute_script(
            "const s = getComputedStyle(arguments[0]); return s.outlineStyle + s.outlineWidth",
            element,
        )
        if style in ("none0px", "none3px"):
            unseen.append(reached[-1])
        if "regime" in element.text and element.tag_name == "button":
            break
    assert unseen == []
    for part in ("<summary", "<select", 'type="search"', 'type="checkbox"', 'type="reset"'):
        assert any(part in markup for markup in reached), part
    press(Keys.SPACE)
    assert column(page, 0) == ["different Hessians", "i.i.d.", "m = 1", "q = 0"]
    press(Keys.ENTER)
    assert column(page, 0) == ["q = 0", "m = 1", "i.i.d.", "different Hessians"]


@needs_browser
def test_controls_have_names(page: Any) -> None:
    nameless = page.execute_script(
        "return [...document.querySelectorAll('input, select')]"
        ".filter(i => !i.labels.length || !i.labels[0].textContent.trim()).length"
    )
    assert nameless == 0
    assert page.find_element("tag name", "fieldset").find_element("tag name", "legend")


@needs_browser
@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_the_page_never_scrolls_sideways(page: Any, width: int) -> None:
    look(page, width, 844)
    page.get(page.address)
    for details in (False, True):
        page.execute_script(
            "document.querySelectorAll('details').forEach(d => d.open = arguments[0])", details
        )
        wide = page.execute_script(
            "scrollTo(1e4, 0); const root = document.documentElement;"
            "return [root.scrollWidth - root.clientWidth, scrollX]"
        )
        assert wide == [0, 0]


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark(page: Any, scheme: str) -> None:
    """WCAG 2: a contrast of 4.5 for text, 3 for what is large."""
    look(page, 1280, 900, prefers_color_scheme=scheme)
    page.get(page.address)
    faint, darkness = page.execute_script(CONTRAST)
    assert faint == []
    assert (darkness < 0.05) == (scheme == "dark")


CONTRAST = """
const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
const luminance = (colour) => {
  const [r, g, b] = numbers(colour).slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const colour = getComputedStyle(e).backgroundColor;
    if ((numbers(colour)[3] ?? 1) > 0.99) return colour;
  }
  return "rgb(255, 255, 255)";
};
document.querySelectorAll("details").forEach((d) => (d.open = true));
const faint = [];
for (const element of document.body.querySelectorAll("*")) {
  const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  if (!own || !element.getClientRects().length || element.tagName === "OPTION") continue;
  const style = getComputedStyle(element);
  const [a, b] = [luminance(style.color), luminance(behind(element))].sort((x, y) => y - x);
  const large = parseFloat(style.fontSize) >= 24;
  if ((a + 0.05) / (b + 0.05) < (large ? 3 : 4.5) || style.opacity < 1)
    faint.push(element.outerHTML.slice(0, 80));
}
return [faint, luminance(behind(document.body))];
"""


@needs_browser
def test_verdicts_are_words_with_a_mark(page: Any) -> None:
    badges = {badge.text for badge in page.find_elements("css selector", "td .badge")}
    assert badges <= {"✗ REFUTED", "? UNDECIDED", "✓ HOLDS", "\N{EN DASH} INAPPLICABLE"}
    assert len(badges) == 4


@needs_browser
def test_truth_and_bound_differ_in_shape(page: Any) -> None:
    dashes = page.execute_script(
        "return ['truth', 'bound'].map(c => getComputedStyle("
        "document.querySelector(`.spark .${c}`)).strokeDasharray)"
    )
    assert dashes[0] == "none"
    assert dashes[1] != "none"


@needs_browser
def test_on_paper_everything_is_open_and_controls_are_gone(page: Any) -> None:
    page.execute_script("dispatchEvent(new Event('beforeprint'))")
    look(page, 1280, 900, media="print")
    assert all(d.get_attribute("open") for d in page.find_elements("tag name", "details"))
    assert not page.find_element("css selector", ".filters").is_displayed()
    page.execute_script("dispatchEvent(new Event('afterprint'))")
    assert not any(d.get_attribute("open") for d in page.find_elements("tag name", "details"))
