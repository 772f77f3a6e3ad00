"""A long run becomes several web pages, which together contain all of it and link to one another."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
from recorded_runs.events import openhands_v0

from gistpoint.sessions.exports.html import page as page_module
from gistpoint.tui.cli import main

Captured = pytest.CaptureFixture[str]


def long_run(path: Path, steps: int, *, long: str = "") -> Path:
    """Write a chat with a step for each message."""
    roles = ["assistant", "user"]
    said = [{"role": roles[n % 2], "content": f"message {n:05} {long}"} for n in range(steps)]
    path.write_text(json.dumps({"messages": said}), encoding="utf-8")
    return path


def links_of(text: str) -> list[str]:
    line, *others = re.findall(r'<p class="pages">.*</p>', text)
    assert others == [line], "above and below the steps"
    return re.findall(r'href="([^"]*)"', line)


def test_each_step_is_on_one_page_and_each_page_is_a_link_away(tmp_path: Path, capsys: Captured) -> None:
    run = long_run(tmp_path / "run.json", 2_500)
    target = tmp_path / "a run & more.html"
    assert main(["convert", str(run), "--to", "html", "-o", str(target)]) == 0
    assert "3 pages were written" in capsys.readouterr().err
    names = ["a run & more.html", "a run & more.page-2.html", "a run & more.page-3.html"]
    assert sorted(path.name for path in tmp_path.glob("*.html")) == sorted(names)
    numbers = []
    for name in names:
        text = (tmp_path / name).read_text(encoding="utf-8")
        steps = [int(number) for number in re.findall(r'<details class="step [^"]*" id="step-(\d+)"', text)]
        entries = [int(number) for number in re.findall(r'<li class="[^"]*"><a href="#step-(\d+)"', text)]
        assert steps == entries
        numbers += steps
        others = [other.replace(" ", "%20").replace("&", "%26") for other in names if other != name]
        assert links_of(text) == others
        assert ('<section class="run"' in text) == (name == names[0])
    assert numbers == list(range(1, 2_501))
    middle = (tmp_path / names[1]).read_text(encoding="utf-8")
    assert 'href="a%20run%20%26%20more.html" rel="prev"' in middle
    assert 'href="a%20run%20%26%20more.page-3.html" rel="next"' in middle


def test_a_run_of_a_thousand_steps_is_one_page_without_links(tmp_path: Path, capsys: Captured) -> None:
    run = long_run(tmp_path / "run.json", 1_000)
    assert main(["convert", str(run), "--to", "html", "-o", str(tmp_path / "run.html")]) == 0
    assert capsys.readouterr().err == ""
    assert [path.name for path in tmp_path.glob("*.html")] == ["run.html"]
    assert 'class="pages"' not in (tmp_path / "run.html").read_text(encoding="utf-8")


def test_pages_in_files_leave_out_nothing_and_a_stream_reports_what_it_leaves_out(
    tmp_path: Path, capsys: Captured
) -> None:
    long = "".join(f"{number:>7}" for number in range(40_000))
    run = long_run(tmp_path / "run.json", 4, long=long)
    assert main(["convert", str(run), "--to", "html", "-o", str(tmp_path / "run.html")]) == 0
    written = unescape((tmp_path / "run.html").read_text(encoding="utf-8"))
    assert written.count(long) >= 4
    assert capsys.readouterr().err == ""
    assert main(["convert", str(run), "--to", "html"]) == 0
    printed = capsys.readouterr()
    texts = printed.out.count("characters are not on this page")
    left_out = texts * (len(long) + len("message 00000 ") - page_module.LONGEST)
    assert texts >= 4
    assert f"The page leaves out {left_out:,} characters of {texts} texts; -o FILE" in printed.err


def test_a_page_is_not_written_over_the_run(tmp_path: Path, capsys: Captured) -> None:
    run = long_run(tmp_path / "run.html", 3)
    before = run.read_bytes()
    assert main(["convert", str(run), "--to", "html", "-o", str(run)]) == 2
    assert "is the run itself" in capsys.readouterr().err
    assert run.read_bytes() == before


def test_another_file_is_not_replaced_by_a_page_and_old_pages_go(tmp_path: Path, capsys: Captured) -> None:
    run, target = long_run(tmp_path / "run.json", 2_500), tmp_path / "it.html"
    others = tmp_path / "it.page-2.html"
    others.write_text("<p>mine</p>")
    assert main(["convert", str(run), "--to", "html", "-o", str(target)]) == 2
    assert "which is another file" in capsys.readouterr().err
    assert others.read_text() == "<p>mine</p>"
    assert not target.exists()
    others.unlink()
    for steps, names in (
        (2_500, ["it.html", "it.page-2.html", "it.page-3.html"]),
        (1_500, ["it.html", "it.page-2.html"]),
        (10, ["it.html"]),
    ):
        long_run(run, steps)
        assert main(["convert", str(run), "--to", "html", "-o", str(target)]) == 0
        assert sorted(path.name for path in tmp_path.glob("*.html")) == names


def test_a_device_gets_one_page_even_if_a_shell_sends_it_to_a_file(tmp_path: Path) -> None:
    run = long_run(tmp_path / "run.json", 1_001)
    command = [sys.executable, "-m", "gistpoint", "convert", str(run), "--to", "html", "-o", "/dev/stdout"]
    with (tmp_path / "out").open("wb") as out:
        subprocess.run(command, stdout=out, stderr=subprocess.PIPE, check=True)
    text = (tmp_path / "out").read_text(encoding="utf-8")
    assert text.count('<details class="step') == 1_001
    assert 'class="pages"' not in text.partition("<main>")[2]


@pytest.mark.parametrize(("name", "warns"), [("page", True), ("page.txt", True), ("page.HTM", False)])
def test_a_name_that_browsers_take_for_plain_text_is_reported(
    tmp_path: Path, name: str, warns: bool, capsys: Captured
) -> None:
    run = long_run(tmp_path / "run.json", 3)
    assert main(["convert", str(run), "--to", "html", "-o", str(tmp_path / name)]) == 0
    warning = f"gistpoint: {name} does not end in .html, so browsers show the page as plain text.\n"
    assert capsys.readouterr().err == (warning if warns else "")
    assert (tmp_path / name).read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("given", ["text", "html", "markdown"])
def test_headers_have_the_sums_of_the_steps(tmp_path: Path, given: str, capsys: Captured) -> None:
    run = tmp_path / "run.json"
    run.write_text(json.dumps(openhands_v0()))
    words = ["show", str(run)] if given == "text" else ["convert", str(run), "--to", given]
    assert main(words) == 0
    header = capsys.readouterr().out.replace("<dt>", "").replace("</dt><dd>", " ")
    assert re.search(r"tokens +~5 / 2\b", header)


def test_rules_that_slow_a_page_apply_only_without_scripts(tmp_path: Path) -> None:
    target = tmp_path / "run.html"
    assert main(["convert", str(long_run(tmp_path / "run.json", 3)), "--to", "html", "-o", str(target)]) == 0
    text = target.read_text(encoding="utf-8")
    with_scripts = re.sub(r"<noscript>.*?</noscript>", "", text, flags=re.DOTALL)
    assert ":root:has(" in text
    assert ":has(" not in with_scripts
    assert not re.search(r"sheet|\.disabled = true", with_scripts), (
        "the script leaves style sheets as they are"
    )
