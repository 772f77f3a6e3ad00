"""A run as a web page in a real browser: attacks have no effect; it can be searched, navigated and read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from browser_windows import CHROMIUM, chromium
from playwright.async_api import Browser, Page, expect

from gistpoint.sessions.exports.registry import exporter
from gistpoint.sessions.runs.opening import open_run

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]

UNTIL_MS = 120_000
ATTACKS = (
    "<script>window.hit = 1</script>",
    "</pre></script></style><img src=x onerror='window.hit = 2'>",
    "]]><svg onload=window.hit=3>--><!--",
    "[read](javascript:window.hit=4) javascript:window.hit=5 http://attack.example/",
    '" onmouseover="window.hit = 6" x="' + "y" * 100_000,
    "```html\n<iframe src=javascript:window.hit=7>\n```\n@@ -1 +1 @@\n-<b>\n+<base href=//attack.example>",
    "\x1b[2J\x00\x07\u202e\u2028&lt;b&gt; &#60;script&#62; \ud800",
)
"""Strings that would act as markup or hide something."""
DOT = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
CODE = "def sought(number):\n" + "    number += 1\n" * 200


def _run(path: Path) -> Path:
    """Write a run of 41 steps, first with attacks in every place, then with a file, and return its page."""
    dot = {"type": "image_url", "image_url": {"url": f"data:image/gif;base64,{DOT}"}}
    asked = {"type": "text", "text": "\n".join(ATTACKS)}
    messages: list[dict[str, object]] = [{"role": "user", "content": [asked, dot]}]
    for number in range(20):
        attack = ATTACKS[number] if number < len(ATTACKS) else ""
        call = {"name": attack or "view", "arguments": json.dumps({attack or "path": attack or "/a/code.py"})}
        id = f"{attack}{number}"
        calls = [{"id": id, "type": "function", "function": call}]
        messages.append({"role": "assistant", "content": attack or f"look {number}", "tool_calls": calls})
        messages.append({"role": "tool", "tool_call_id": id, "content": attack or CODE})
        messages.append({"role": "user", "content": f"answer {number}"})
    messages[-1]["content"] = "z" * 150_000 + " its end"
    path.write_text(json.dumps({"messages": messages, "instance_id": ATTACKS[0]}), encoding="utf-8")
    page = path.with_suffix(".html")
    with page.open("w", encoding="utf-8", errors="backslashreplace") as file:
        file.writelines(exporter("html")(open_run(path)))
    return page


async def _open(browser: Browser, address: str, done: list[str], **settings: object) -> Page:
    context = await browser.new_context(viewport={"width": 1280, "height": 800}, **settings)  # type: ignore[arg-type]
    page = await context.new_page()
    page.set_default_timeout(UNTIL_MS)
    page.on("request", lambda request: done.append(request.url))
    page.on("pageerror", lambda error: done.append(str(error)))
    page.on("console", lambda said: done.append(said.text))
    page.on("dialog", lambda dialog: done.append(dialog.message))
    await page.goto(address)
    return page


async def test_a_page_is_safe_searched_and_navigated(tmp_path: Path) -> None:
    address = _run(tmp_path / "run").as_uri()
    done: list[str] = []
    expect.set_options(timeout=UNTIL_MS)
    async with chromium() as browser:
        page = await _open(browser, f"{address}#step-12", done)
        await expect(page.locator("#step-12")).to_be_in_viewport()
        await expect(page.locator("nav a[aria-current]")).to_have_attribute("href", "#step-12")
        assert await page.evaluate("document.querySelector('#step-12').getBoundingClientRect().top") < 200
        assert await page.evaluate("[document.scripts.length, document.images.length, document.links.length]") == [
            1, 1, 2 * await page.locator(".step").count(),
        ]  # fmt: skip
        assert (
            await page.evaluate("document.querySelectorAll('iframe, base, svg, form, [onmouseover]').length")
            == 0
        )
        assert await page.evaluate("document.styleSheets.length") == 1, "no rules for pages without scripts"
        await page.locator("img").scroll_into_view_if_needed()
        await expect(page.locator("img")).to_have_js_property("naturalWidth", 1)
        await page.evaluate("location.hash = ''; location.hash = '#step-12'")
        await expect(page.locator(".here")).to_have_id("step-12")
        await page.keyboard.press("j")
        await expect(page.locator(".here")).to_have_id("step-13")
        await page.keyboard.press("k")
        await expect(page.locator(".here")).to_have_id("step-12")
        assert page.url.endswith("#step-12")

        await page.keyboard.press("/")
        await page.keyboard.type("SOUGHT(number)")
        await expect(page.locator("#found")).to_have_text("1 of 13")
        await page.keyboard.press("Enter")
        await expect(page.locator("#found")).to_have_text("2 of 13")
        await page.keyboard.press("Escape")
        folded = page.locator(".here .more")
        await expect(folded.first).not_to_have_attribute("open", "")
        await page.keyboard.press("o")
        await expect(folded.first).to_have_attribute("open", "")
        await page.locator(
            "#step-12 > summary"
        ).click()  # this one is already folded, and the button folds the others
        steps, opened = page.locator(".step"), page.locator(".step[open]")
        await expect(opened).to_have_count(await steps.count() - 1)
        for label, count in (("collapse steps", 0), ("expand steps", await steps.count())):
            await expect(page.locator("#fold")).to_have_text(label)
            await page.locator("#fold").click()
            await expect(opened).to_have_count(count)
        for label in ("expand texts", "collapse texts", "expand texts"):
            await expect(page.locator("#unfold")).to_have_text(label)
            await page.locator("#unfold").click()

        await page.locator("#show-view").uncheck()
        await expect(page.locator(".k-view.step").first).to_be_hidden()
        await page.evaluate("location.hash = document.querySelector('.k-view.step').id")
        await expect(page.locator(".k-view.step").first).to_be_visible()
        ground = "getComputedStyle(document.body).backgroundColor"
        light = await page.evaluate(ground)
        await page.locator("#dark").check()
        assert await page.evaluate(ground) != light
        await page.reload()
        await expect(page.locator("#dark")).to_be_checked()
        assert await page.evaluate(ground) != light

        plain = await _open(browser, address, done, java_script_enabled=False, color_scheme="dark")
        await expect(plain.locator("#find")).to_be_hidden()
        assert await plain.evaluate("document.styleSheets.length") == 2
        await expect(plain.get_by_text("look 12").last).to_be_visible()
        assert await plain.locator(".cut").count() >= 1
        body = await plain.locator("main").inner_text()
        assert all(attack in body for attack in ATTACKS[:4])
        assert "characters are not on this page" in body
        await plain.locator("#show-view").uncheck()
        await expect(plain.locator(".k-view.step").first).to_be_hidden()
        await plain.locator("#light").check()
        assert await plain.evaluate(ground) == light
    assert done == [address] * 3
