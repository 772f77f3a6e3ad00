"""Texts for solvers: one version for people and models, and old versions that never change."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from builders import build_task
from gist_tasks import build_gist_task

from gistpoint.core.agents.settings import AgentSettings, prompt_text
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.demo.tasks import unpack_demo
from gistpoint.core.generation.making import REFUSALS_COST, TEMPLATES
from gistpoint.core.kinds.folder import read_answer, read_task, write_task
from gistpoint.core.kinds.gist import kind as gist
from gistpoint.core.kinds.gist.brief import gist_template, static_template
from gistpoint.core.kinds.gist.model import GistSettings
from gistpoint.core.kinds.registry import kind_of, render_brief
from gistpoint.core.study.bank import ATTESTATION, block
from gistpoint.core.study.reading import read_study
from gistpoint.core.tasks.brief import template_sha256, template_text
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.core.tasks.rules import FACES, RULES, Face, not_allowed, rules_text
from gistpoint.sessions.studies.folder import StudyTemplate, create_study
from gistpoint.tui.mcp.server import INSTRUCTIONS

BRIEFS = {
    "repair-remove-1": "484c1d1e68ab3b9a",
    "repair-remove-refusals-cost-1": "7f365785fe0333ce",
    "repair-discovery-1": "67e9db18790e649a",
    "repair-discovery-refusals-cost-1": "0677b3bd977cbd67",
    "repair-several-1": "db84e891d657b901",
    "repair-several-refusals-cost-1": "cd055cbb189be65d",
    "export-shell-1": "49159bbbbdf74162",
    "gist-1": "c3e87dd6dfbce89b",
    "gist-tracing-1": "a0a54e03575696a9",
    "gist-reading-1": "a760e07a1fea5b32",
    "gist-give-test-1": "bd0041ed60f4648f",
    "gist-2": "90ca6d816b639b87",
    "gist-tracing-2": "ff87c55178c67307",
    "gist-reading-2": "4320b047987d1d98",
    "gist-give-test-2": "4b6f1a08f61a693d",
}
PROMPTS = {
    "agent-1": "6c58733f1a9f4308",
    "no-call-1": "7676bc169952d63c",
    "cut-off-1": "cdf056291f006d8e",
    "again-1": "5b82d379ccd5d6dd",
    "handover-1": "a03d05446f2f3092",
}
OLD_SETTINGS = (
    '{"setting":"tools","system":"SYSTEM","context_tokens":128000,"attempt_tokens":null,"sampling":{'
    '"temperature":null,"top_p":null,"seed":null,"max_output_tokens":null,"reasoning_effort":null,'
    '"thinking_tokens":null},"price":null,"prompts":{'
    '"agent-1":"6c58733f1a9f43084a8c1c541bfe1b577fbcde9ca85918e319570c6ce87a1fc9",'
    '"no-call-1":"7676bc169952d63c665e4fb42bb137ec77e3e0d58cd649c043608373576c955d",'
    '"cut-off-1":"cdf056291f006d8e0c474533a5e274f14b40fc441cfefdb81687c9c82f7a173a",'
    '"again-1":"5b82d379ccd5d6dd2ab321b24358f09f8a2989c106c2e0cc8c8daff14f5afdda",'
    '"handover-1":"a03d05446f2f3092480433f9dd78cdae7f29af72a92f74d0017e185ebda97260",'
    '"gist-static-1":"e19fbd0cefa30dd3db316a094b60bebe186793fd31ebda9c7a25945c217aa9d2"},"loop_version":1}'
)
"""A run's settings as stored by an earlier version, with a placeholder for the system prompt."""
_STOPS = re.compile(r"(?<=[.!?:])\s+")
_KEYS = re.compile(r"\bF\d+\b|\bCtrl\b|\bEsc\b|\bpress\b")


def with_template(task: Task, name: str) -> Task:
    brief = replace(task.brief, template=name, template_sha256=template_sha256(name))
    made = replace(task, brief=brief)
    write_task(made, read_answer(task))
    return read_task(task.folder)


# Old texts


@pytest.mark.parametrize(("name", "beginning"), BRIEFS.items())
def test_a_brief_of_an_earlier_version_never_changes(name: str, beginning: str) -> None:
    assert template_sha256(name).startswith(beginning)


@pytest.mark.parametrize(("name", "beginning"), PROMPTS.items())
def test_a_prompt_of_an_earlier_version_never_changes(name: str, beginning: str) -> None:
    assert sha256_of_text(prompt_text(name)).startswith(beginning)


def test_a_stored_task_keeps_its_brief(tmp_path: Path) -> None:
    task = build_task(tmp_path, Mode.REMOVE)
    old = with_template(task, "repair-remove-1")
    brief = render_brief(old)
    assert "You may change this function alone." in brief
    assert "Every call costs one tool use, also one that is refused." in brief
    assert "confirmed" not in brief
    shell = kind_of(old).exported_brief(old, "/repo", "")
    assert "You work in a shell, in a container without a network; the repository is in `/repo`." in shell


@pytest.mark.parametrize(
    ("system", "digest"),
    [
        ("agent-1", "bdece7415c354778992d02c137cc139a697847341910740c330e252de62a2cc5"),
        ("none", "445bcc1e606204493d6f29516d92b4f826a4a3700e3decded59e77b09bb6336b"),
    ],
)
def test_a_stored_run_keeps_its_digest_and_its_texts(system: str, digest: str) -> None:
    stored = msgspec.json.decode(OLD_SETTINGS.replace("SYSTEM", system), type=AgentSettings)
    assert stored.digest() == digest
    for stem in ("no-call", "cut-off", "again", "handover"):
        assert stored.reply_text(stem) == prompt_text(f"{stem}-1")
        assert AgentSettings().reply_text(stem) == prompt_text(f"{stem}-2")


def test_an_old_system_prompt_brings_the_other_old_texts() -> None:
    chosen = AgentSettings(system="agent-1")
    assert chosen == msgspec.json.decode(OLD_SETTINGS.replace("SYSTEM", "agent-1"), type=AgentSettings)
    assert {name.rpartition("-")[2] for name in AgentSettings().prompts if name.startswith("agent")} == {"2"}


def test_a_gist_in_one_request_has_the_version_of_its_task(tmp_path: Path) -> None:
    task = build_gist_task(tmp_path)
    assert static_template(task) == "gist-static-2"
    for template in ("gist-1", "gist-2"):
        assert static_template(with_template(task, template)) == "gist-static-1"
    assert sha256_of_text(gist.prompt_text("gist-static-1")).startswith("e19fbd0cefa30dd3")


# The new version


def test_the_demos_tasks_have_the_newest_briefs(tmp_path: Path) -> None:
    newest = {*TEMPLATES.values(), gist_template(GistSettings())}
    for _, task in unpack_demo(tmp_path):
        assert task.brief.template in newest
        assert "even if it is refused" in render_brief(task)


@pytest.mark.parametrize("name", [*TEMPLATES.values(), *REFUSALS_COST.values()])
def test_a_brief_says_each_thing_that_counts_once(name: str) -> None:
    text = template_text(name)
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings == ["What counts", "Submitting", "Budgets", "What fails"]
    sentences = _STOPS.split(text)
    assert len(sentences) == len(set(sentences))
    for fact in (
        "The task is solved if",
        "The tests run on this repository",
        "of which at most {{submissions}} may be submissions",
        "even if it is refused",
        "A pass is then confirmed",
        "is not allowed",
    ):
        assert text.count(fact) == 1, fact
    costs = "counts as a submission too" if "refusals-cost" in name else "does not count as a submission"
    assert f"refused before any test has run {costs}." in text


@pytest.mark.parametrize("mode", [Mode.REMOVE, Mode.DISCOVERY])
def test_a_brief_for_a_shell_names_no_tool_of_gistpoint(mode: Mode, tmp_path: Path) -> None:
    task = build_task(tmp_path, mode)
    text = kind_of(task).exported_brief(task, "/repo", "")
    assert "## How you work\n\nYou work in a shell" in text
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["What counts", "How you work", "What fails"]
    assert not re.search(r"`(submit_attempt|replace_function)`|tool use", text)


def test_people_and_models_read_the_same_rules() -> None:
    """Each sentence is the same for both, except for the words that name keys or calls."""
    words = FACES[RULES]
    assert words[Face.PERSON].keys() == words[Face.MODEL].keys()
    own = ("stopping", "heading", "details")
    sentences = {}
    for face in Face:
        text = rules_text(face)
        for key in own:
            text = text.replace(words[face][key], "")
        sentences[face] = [part for part in _STOPS.split(text) if part]
    assert len(sentences[Face.PERSON]) == len(sentences[Face.MODEL])
    for person, model in zip(sentences[Face.PERSON], sentences[Face.MODEL], strict=True):
        for key in words[Face.PERSON].keys() - set(own):
            person = person.replace(words[Face.PERSON][key], f"<{key}>")
            model = model.replace(words[Face.MODEL][key], f"<{key}>")
        assert person == model


def test_a_model_reads_of_no_key_and_a_person_of_no_reply() -> None:
    assert not _KEYS.search(rules_text(Face.MODEL))
    assert not re.search(r"\brepl(y|ies)\b|\btool calls?\b", rules_text(Face.PERSON))
    assert rules_text(Face.MODEL) in prompt_text("agent-2")
    assert not_allowed(Face.MODEL) in INSTRUCTIONS


def test_what_is_not_allowed_is_what_the_forms_ask(tmp_path: Path) -> None:
    asked = {item.id for item in block(ATTESTATION).item if item.options}
    words = {
        "aids_ai": "an AI assistant",
        "aids_internet": "the internet",
        "aids_repository": "the library's own repository or an installed copy of it",
        "aids_person": "the help of another person",
    }
    assert asked == set(words)
    assert all(aid in not_allowed(Face.PERSON) for aid in words.values())
    create_study(tmp_path / "mine", StudyTemplate.BASELINE)
    assert read_study(tmp_path / "mine").texts.rules.strip() == rules_text(Face.PERSON)
