from __future__ import annotations

import os
from pathlib import Path
from typing import get_type_hints

import msgspec
import pytest
from study_parts import DECLARATION, TEXTS, declared, study_tasks

from gistpoint.core.study.bank import BLOCKS, block
from gistpoint.core.study.declaration import Moment, Study
from gistpoint.core.study.operations import StudyError
from gistpoint.core.study.questions import asked, fault_of, scale_of, screened_out
from gistpoint.core.study.reading import protocol_sha256, read_study
from gistpoint.core.study.soundness import faults_with_tasks
from gistpoint.core.tasks.fields import structs_in
from gistpoint.core.tasks.names import word_name

TASK_FORM = '[[questionnaire]]\nid = "task"\nat = "after_task"\nuse = ["after-task-1", "aids-1"]\n'
OWN_ITEM = '[[questionnaire]]\nid = "a"\nat = "before"\n[[questionnaire.item]]\nid = "x"\ntext = "?"\n'


def test_defaults_texts_and_the_attestation_are_filled_in() -> None:
    study = declared()
    assert study.design.per_source == 2
    assert study.texts.consent == TEXTS["consent.md"]
    (form,) = study.questionnaires_at(Moment.AFTER_TASK)
    assert [item.id for item in form.item][:2] == ["aids_ai", "aids_internet"]


def test_a_form_that_attests_is_not_asked_twice() -> None:
    (form,) = declared(TASK_FORM).questionnaires_at(Moment.AFTER_TASK)
    assert form.id == "task"
    assert [item.id for item in form.item].count("aids_ai") == 1


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "tasks_per_person",
            "task_per_person",
            r"'design.task_per_person' is not known.*mean 'tasks_per_person'",
        ),
        ("seed = 20261121", "", "'seed' is missing"),
        (
            "tasks_per_person = 2",
            'tasks_per_person = "2"',
            "'design.tasks_per_person' must be a whole number",
        ),
        (
            "tasks_per_person = 2",
            "tasks_per_person = 0",
            "'design.tasks_per_person' must be at least 1, but is 0",
        ),
        (
            "tasks_per_person = 2",
            "tasks_per_person = 99999999999999999999",
            "'design.tasks_per_person' must be",
        ),
        (
            'id = "alone"',
            'id = "alone"\nassistance = "chatt"',
            "'condition.*assistance' has 'chatt'.*mean 'chat'",
        ),
        ('id = "alone"', 'id = "alone"\n[[condition]]\nid = "alone"', "'condition' has the id 'alone' twice"),
        ('id = "alone"', 'id = "alone"\npeople = false', "'condition' has no condition with people"),
        ('id = "alone"', 'id = "\\u001b[2J"', r"'condition\[0\].id' is '\\x1b\[2J'"),
        ('id = "alone"', 'id = "alone"\ntools = "search"', r"'condition\[0\].tools' must be a list"),
        ('id = "alone"', 'id = "alone"\nassistance = "chat"', r"'condition\[0\].chat.model' is missing"),
        ('id = "railway"', 'id = "Railway 1"', "'id' must be 3 to 40 lower-case letters"),
        ("version = 1", "version = 2", "'version' is not 1"),
        ("file:rules.md", "  ", "'texts.rules' is empty"),
        ("file:rules.md", "file:ruels.md", "'texts.rules'"),
        ("lab@example.org", "", "'privacy.contact' is empty"),
    ],
)
def test_errors_name_the_file_and_the_key(old: str, new: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "texts" / name).write_text(text)
    assert old in DECLARATION
    (tmp_path / "study.toml").write_text(DECLARATION.replace(old, new))
    with pytest.raises(StudyError, match=r"(?s)study\.toml: the key .*" + words) as caught:
        read_study(tmp_path)
    assert str(caught.value).isprintable()
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            '[protocol]\nprimary_contrast = ["alone", "alne"]',
            "'alne', which is not a condition or solver. Did you mean",
        ),
        ('[protocol]\nprimary_contrast = ["alone"]', "two different names"),
        ('[texts]\nfeedback = "all"', "valid TOML"),
        ('[quality]\nexclude_on = ["aid_admited"]', "not a flag. Did you mean 'aid_admitted'"),
        ("[quality]\nflag_idle_share = nan", "'quality.flag_idle_share'"),
        ("[quality]\nflag_idle_share = 2", "'quality.flag_idle_share' must be at most 1"),
        (
            '[[solver]]\nname = "m"\nruns = ["r/*"]\ncondition = "alon"',
            r"'solver\[0\].condition' has 'alon'.*'alone'",
        ),
        ('[[solver]]\nname = "alone"\nruns = ["r/*"]\ncondition = "alone"', "the name of a condition"),
        (
            '[[questionnaire]]\nid = "a"\nat = "before"\nuse = ["sus-1"]',
            r"'questionnaire\[0\].use'.*no block 'sus-1'",
        ),
        ('[[questionnaire]]\nid = "a"\nat = "before"\nuse = ["tlx-1", "tlx-1"]', "the id 'tlx_mental' twice"),
        (TASK_FORM + TASK_FORM, "the id 'task' twice"),
        ('[[questionnaire]]\nid = "a"\nat = "befor"', r"'questionnaire\[0\].at' has 'befor'.*mean 'before'"),
        ('[participants]\nscreening = "start"', "'participants.screening' has 'start'"),
        (
            OWN_ITEM + 'kind = "choice"\noptions = ["a"]',
            "needs at least two options",
        ),
        (
            OWN_ITEM + 'kind = "number"\nmin = inf',
            "a min and a max, both numbers",
        ),
        (OWN_ITEM + 'kind = "number"\nlabels = ["low"]', "labels for its two ends"),
        (
            OWN_ITEM + 'kind = "text"\nlabels = ["low", "high"]',
            "has labels, which its kind, text, does not have",
        ),
        ("x = " + "[" * 3000, "valid TOML"),
        ("x = " + "9" * 5000, "study.toml"),
        ("[design.quota]\nremove = 3", "adds up to 3, more than the 2 tasks"),
    ],
)
def test_what_can_not_be_is_refused(more: str, words: str) -> None:
    with pytest.raises(StudyError, match="(?s)" + words):
        declared(more)


@pytest.mark.parametrize(
    "name",
    [
        "../study.toml",
        "/etc/passwd",
        "..",
        "",
        ".",
        "a\x00b",
        "a\nb",
        "sub",
        "link.md",
        "pipe",
        "far/passwd",
        "x" * 300,
    ],
)
def test_a_text_lies_in_the_folder_of_texts(name: str, tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    (texts / "sub").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (texts / "link.md").symlink_to(tmp_path / "secret")
    (texts / "far").symlink_to("/etc")
    os.mkfifo(texts / "pipe")
    for good, text in TEXTS.items():
        (texts / good).write_text(text)
    quoted = name.replace("\n", "\\n").replace("\x00", "\\u0000")
    (tmp_path / "study.toml").write_text(DECLARATION.replace("file:rules.md", f"file:{quoted}"))
    with pytest.raises(StudyError, match=r"'texts.rules'") as caught:
        read_study(tmp_path)
    assert str(caught.value).isprintable()


def test_links_in_a_circle_binary_and_huge_texts_are_sentences(tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "consent.md").write_text("Yes?")
    (tmp_path / "study.toml").write_text(DECLARATION)
    rules = texts / "rules.md"
    rules.symlink_to(rules)
    with pytest.raises(StudyError, match=r"rules\.md"):
        read_study(tmp_path)
    rules.unlink()
    rules.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StudyError, match="UTF-8"):
        read_study(tmp_path)
    rules.write_bytes(b"a" * 1_000_001)
    with pytest.raises(StudyError, match="more than"):
        read_study(tmp_path)
    rules.write_bytes(b"file:consent.md\r\n")
    assert read_study(tmp_path).texts.rules == "file:consent.md\n"


def test_the_protocol_hash_covers_declaration_texts_questions_and_tasks_but_not_the_spelling() -> None:
    tasks = study_tasks(4)
    base = protocol_sha256(declared(), tasks)
    respelled = declared("# a comment", "[report]", "hard = ['cyclomatic', 'degree']")
    assert protocol_sha256(respelled, tasks) == base
    assert protocol_sha256(declared('[checklist]\n"1.9" = "exempted"'), tasks) == base
    changed = [
        protocol_sha256(declared(changes={"seed = 20261121": "seed = 1"}), tasks),
        protocol_sha256(declared(texts={"rules.md": "Everything is allowed."}), tasks),
        protocol_sha256(declared(TASK_FORM), tasks),
        protocol_sha256(declared(), study_tasks(5)),
    ]
    assert len({base, *changed}) == 5


def test_the_bank_is_worded_as_published() -> None:
    usability = block("end-1").item[:10]
    assert usability[0].text == "I think that I would like to use this system frequently."
    assert all(
        item.points == 5 and item.labels == ("strongly disagree", "strongly agree") for item in usability
    )
    load = block("tlx-1").item
    assert [item.text.partition(" ")[0] for item in load] == [
        "Mental",
        "Physical",
        "Temporal",
        "Performance:",
        "Effort:",
        "Frustration:",
    ]
    assert all((item.min, item.max) == (0, 100) for item in load)
    assert scale_of(load[3]) == "from 0 (perfect) to 100 (failure)"
    others = [name for name in BLOCKS if name != "after-task-1"]  # of which after-task-2 is the next version
    ids = [item.id for name in others for item in block(name).item]
    assert len(ids) == len(set(ids))


def test_a_question_for_each_library_is_asked_once_for_each() -> None:
    study = declared('[[questionnaire]]\nid = "before"\nat = "before"\nuse = ["sources-1"]')
    (form,) = study.questionnaires_at(Moment.BEFORE)
    questions = asked(form, study_tasks(6).values())
    assert [question.id for question in questions] == [
        "source.library-0",
        "source.library-1",
        "source.library-2",
    ]
    assert questions[0].text == "How well do you know the library library-0?"


def test_answers_fit_their_questions() -> None:
    ease = block("after-task-1").item[0]
    assert [fault_of(ease, value) == "" for value in (1, 7, None, 0, 8, True, 2.5, "4")] == [True] * 3 + [
        False
    ] * 5
    chance = block("forecast-1").item[1]
    assert [fault_of(chance, value) == "" for value in (0, 99.5, 101, float("nan"))] == [
        True,
        True,
        False,
        False,
    ]
    admits = block("aids-1").item[0]
    answers: tuple[object, ...] = ("no", "No", None, [])
    assert [fault_of(admits, answer) == "" for answer in answers] == [True, False, False, False]


def test_an_answer_screens_out() -> None:
    study = declared(
        '[participants]\nscreening = "start"\n[[questionnaire]]\nid = "start"\nat = "before"\n[[questionnaire.item]]\n'
        'id = "tools"\ntext = "What do you use?"\nkind = "multi"\noptions = ["a", "b"]\nscreen_out = ["b"]'
    )
    form = study.questionnaire[0]
    assert screened_out(form, {"tools": ["a", "b"]}) == "start.tools"
    assert screened_out(form, {"tools": ["a"]}) == screened_out(form, {}) == ""


def test_the_guide_tells_every_key() -> None:
    page = (Path(__file__).parents[4] / "docs" / "guide" / "study-declaration.md").read_text()
    structs: list[type[msgspec.Struct]] = [Study]
    keys = set[str]()
    while structs:
        for name, annotation in get_type_hints(structs.pop()).items():
            keys.add(name)
            structs += structs_in(annotation)
    assert {key for key in keys if f"`{key}`" not in page and f"[{key}]" not in page} == {"item"}


def test_what_the_tasks_at_hand_can_not_give_is_told_by_its_key() -> None:
    study = declared("[protocol]\nprimary = 'fidelity'")
    ids = f"There are: {', '.join(f'{name[:12]} ({word_name(name)})' for name in study_tasks(4))}."
    assert faults_with_tasks(study, study_tasks(4)) == [
        "study.toml: the key 'protocol.primary' is fidelity, which only gists have, and no task asks"
        " for a gist."
    ]
    study = declared(
        "[design.quota]\nremove = 3\ndiscovry = 1\nhard = 1",
        '[[tag]]\nid = "hard"\ntasks = ["gone"]',
        f'[training]\ntasks = ["{1:064x}", "000"]',
        changes={"tasks_per_person = 2": "tasks_per_person = 5"},
    )
    assert faults_with_tasks(study, study_tasks(4)) == [
        f"study.toml: the key 'training.tasks': there is no task '000', or more than one. {ids}",
        f"study.toml: the key 'tag.hard.tasks': there is no task 'gone', or more than one. {ids}",
        "study.toml: the key 'design.quota.remove' asks for 3 of the tasks, but there are 2.",
        "study.toml: the key 'design.quota.discovry' is neither a mode nor a tag of the tasks. Did"
        " you mean 'discovery'?",
        "study.toml: the key 'design.quota.hard' asks for 1 of the tasks, but there are 0.",
        "study.toml: the key 'design.tasks_per_person' asks for 5 tasks, but there are 3 besides training.",
    ]
