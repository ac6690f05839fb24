"""The pages in a real browser: nothing is asked for from outside, nothing is out of place, on a phone either."""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from example_audit import audit, sweep_said

from kgather._report import render, render_sweep

pytestmark = pytest.mark.long

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PAGES = {"report": lambda: render(audit()), "sweep": lambda: render_sweep(sweep_said())}


@dataclass
class Browser:
    """A browser without a window."""

    driver: Any

    def open(self, file: Path, *, width: int, theme: str) -> None:
        """Open a file at a width, in a theme; what was logged before is forgotten."""
        for log in ("browser", "performance"):
            self.driver.get_log(log)
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 800},
        )
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"media": "screen", "features": [{"name": "prefers-color-scheme", "value": theme}]},
        )
        self.driver.get(file.as_uri())

    def run(self, script: str) -> Any:
        """What an expression is in the page."""
        return self.driver.execute_script(f"return {script}")

    def asked_for(self) -> list[str]:
        """The addresses that the page asked for."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
            # The browser's own start page may still be loading.
            and not message["params"]["documentURL"].startswith("chrome")
        ]

    def save_picture(self, file: Path) -> None:
        """The whole page as a picture."""
        import base64

        height = self.run("document.documentElement.scrollHeight")
        picture = self.driver.execute_cdp_cmd(
            "Page.captureScreenshot",
            {
                "captureBeyondViewport": True,
                "clip": {"x": 0, "y": 0, "width": self.run("innerWidth"), "height": height, "scale": 1},
            },
        )
        file.write_bytes(base64.b64decode(picture["data"]))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium with its driver; where either is missing the tests are skipped."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: no browser tests")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("chromium or chromedriver is not installed (Debian: apt install chromium-driver): no browser tests")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    running = webdriver.Chrome(options, webdriver.ChromeService(driver))
    try:
        yield Browser(running)
    finally:
        running.quit()


@pytest.fixture(scope="module", params=list(PAGES))
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of the pages as a file."""
    file = tmp_path_factory.mktemp("page") / f"{request.param}.html"
    file.write_text(PAGES[request.param](), encoding="utf-8")
    return file


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_stands_alone_and_fits(browser: Browser, page: Path, width: int, theme: str) -> None:
    browser.open(page, width=width, theme=theme)
    assert browser.driver.get_log("browser") == []
    outside = [address for address in browser.asked_for() if not address.startswith("data:")]
    assert outside == [page.as_uri()]

    assert browser.run("innerWidth") == width
    assert browser.run("document.documentElement.scrollWidth") <= width
    # All is inside the page, or in a box of its own that scrolls.
    assert (
        browser.run(
            "[...document.querySelectorAll('main *')].filter(one => !one.closest('.scroll, svg')"
            " && one.getBoundingClientRect().right > innerWidth + 1).map(one => one.outerHTML.slice(0, 80))"
        )
        == []
    )
    folder = os.environ.get("KGATHER_SCREENSHOTS")
    if folder:
        browser.save_picture(Path(folder) / f"{page.stem}-{width}-{theme}.png")


def test_themes_reach_the_plots(browser: Browser, page: Path) -> None:
    colours = {}
    for theme in ("light", "dark"):
        browser.open(page, width=1280, theme=theme)
        colours[theme] = browser.run(
            "[getComputedStyle(document.body).backgroundColor,"
            " getComputedStyle(document.querySelector('svg text')).fill]"
        )
    assert colours["light"][0] == "rgb(255, 255, 255)"
    assert all(light != dark for light, dark in zip(colours["light"], colours["dark"], strict=True))


def test_text_of_plots_can_be_read_on_a_phone(browser: Browser, page: Path) -> None:
    browser.open(page, width=390, theme="light")
    heights = browser.run("[...document.querySelectorAll('svg text')].map(one => one.getBoundingClientRect().height)")
    assert heights
    assert min(heights) >= 8


def test_labels_of_attacks_do_not_touch(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(render(audit()), encoding="utf-8")
    browser.open(file, width=1280, theme="light")
    boxes = browser.run(
        "[...document.querySelectorAll('svg[aria-labelledby^=attacks] text')]"
        ".map(one => one.getBoundingClientRect()).map(box => [box.left, box.top, box.right, box.bottom])"
    )
    overlapping = [
        (one, other)
        for place, one in enumerate(boxes)
        for other in boxes[place + 1 :]
        if min(one[2], other[2]) - max(one[0], other[0]) > 1 and min(one[3], other[3]) - max(one[1], other[1]) > 1
    ]
    assert len(boxes) > 10
    assert overlapping == []


def test_the_numbers_behind_a_plot_are_printed(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(render(audit()), encoding="utf-8")
    browser.open(file, width=1280, theme="dark")
    height = "document.querySelector('details table').getBoundingClientRect().height"
    assert browser.run("document.querySelector('details').open") is False
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert browser.run(height) > 20
    # Ink on paper, whatever the theme.
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.run("getComputedStyle(document.querySelector('nav')).display") == "none"


def test_the_keyboard_reaches_the_content_and_the_tables(browser: Browser, page: Path) -> None:
    from selenium.webdriver import ActionChains, Keys

    browser.open(page, width=390, theme="light")
    ActionChains(browser.driver).send_keys(Keys.TAB).perform()
    assert browser.run("document.activeElement.className") == "skip"
    assert browser.run("document.activeElement.getBoundingClientRect().left") >= 0
    ActionChains(browser.driver).send_keys(Keys.ENTER).perform()
    assert browser.run("document.activeElement.id") == "main"
    assert browser.run("[...document.querySelectorAll('.scroll')].every(one => one.tabIndex === 0)") is True
