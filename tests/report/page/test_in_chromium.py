"""Report pages in the real Chromium send no requests, log nothing and fit every screen."""

import re

import pytest

from rlprof_report._page import page
from tests.cases import cases
from tests.report.page.chromium import looked_at
from tests.report.page.made import made

pytestmark = pytest.mark.slow


def hostile(name):
    """Return *name* followed by markup that runs if a section does not escape it."""
    return (
        f"{name}</script><script>window.__ran=1</script><img src=x onerror='window.__ran=2'>"
        "\"'><svg onload=window.__ran=3></svg>]]>&lt;\u2028\u2029\u202e\0\ud800${1}`"
    )


@pytest.fixture(name="looks", scope="module")
def _looks(tmp_path_factory):
    """Open every page once, in one browser."""
    bad = page(made(odd=hostile))
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy"[^>]*>', bad)
    pages = {
        "usual": page(made()),
        "hostile": bad,
        "hostile without policy": bad.replace(policy, ""),
        "many ranks": page(made(steps=10, ranks=1000, replicas=16)),
        "empty": page(made(steps=0)),
    }
    folder = tmp_path_factory.mktemp("pages")
    files = {name: folder / f"{name}.html" for name in pages}
    for name, file in files.items():
        file.write_text(pages[name], encoding="utf-8")
    jobs = {name: {"page": str(file)} for name, file in files.items()}
    file = str(files["usual"])
    jobs["usual"]["print"] = True
    jobs["phone"] = {"page": file, "width": 390}
    jobs["hostile on a phone"] = {"page": str(files["hostile"]), "width": 390}
    jobs["dark"] = {"page": file, "dark": True}
    jobs["no script"] = {"page": file, "script": False, "print": True}
    jobs["keys"] = {"page": file, "press": ["0", "]", "+", "-", "ArrowRight", "[", "["]}
    return dict(zip(jobs, looked_at(list(jobs.values())), strict=True))


QUIET = {"requests": [], "console": [], "errors": [], "dialogs": []}


@cases("name", "usual", "many ranks", "empty", "phone", "dark", "no script", "keys")
def test_a_page_sends_no_request_and_logs_nothing(looks, name):
    """A page sends no request and shows no console line, error or dialog."""
    assert {key: looks[name][key] for key in QUIET} == QUIET
    assert looks[name]["ready"] is True


@pytest.mark.parametrize("name", ["hostile", "hostile without policy", "hostile on a phone"])
def test_hostile_names_do_nothing(looks, name):
    """Names with markup are shown as text, even without a content security policy."""
    assert (looks[name]["ran"], looks[name]["foreign"]) == (None, 0)
    assert {key: looks[name][key] for key in QUIET} == QUIET
    assert looks[name]["painted"] > 0.001


@pytest.mark.parametrize("name", ["phone", "hostile on a phone", "usual", "many ranks"])
def test_nothing_is_wider_than_the_screen(looks, name):
    """No page scrolls sideways, on a phone of 390 px either."""
    assert looks[name]["overflow_px"] <= 0


def test_without_script_the_slow_step_is_a_still_picture(looks):
    """Without script, a page shows the slow step as a still picture and has all headings."""
    assert (looks["no script"]["still"], looks["no script"]["canvas"]) == (True, False)
    assert (looks["usual"]["still"], looks["usual"]["canvas"]) == (False, True)
    assert looks["no script"]["headings"] == looks["usual"]["headings"]


def test_keys_dark_mode_and_print_work(looks):
    """A page starts at the slow step, follows keys and dark mode, and prints on few sheets."""
    assert looks["usual"]["says"].startswith("step 7 · ")
    assert looks["keys"]["says"].startswith("step ")
    assert looks["keys"]["says"] != looks["usual"]["says"]
    assert looks["usual"]["paper"] == "rgb(255, 255, 255)"
    assert looks["dark"]["paper"] == "rgb(20, 24, 29)"
    assert 3 < looks["usual"]["pdf_pages"] < 20
    assert 3 < looks["no script"]["pdf_pages"] < 20
