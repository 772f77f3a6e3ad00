"""The templates of `study new` are valid as written and usable without a change."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import build_task
from study_folders import Machine

from gistpoint.core.study.declaration import Moment
from gistpoint.core.study.reading import read_study
from gistpoint.core.study.soundness import faults_with_tasks
from gistpoint.core.tasks.model import Mode
from gistpoint.sessions.studies.folder import StudyTemplate, create_study


@pytest.mark.parametrize("template", StudyTemplate)
def test_a_new_study_is_sound(template: StudyTemplate, tmp_path: Path) -> None:
    tasks = [build_task(tmp_path / "made", mode) for mode in (Mode.REMOVE, Mode.DISCOVERY)]
    create_study(tmp_path / "mine", template, tasks)
    study = read_study(tmp_path / "mine")
    faults = faults_with_tasks(study, Machine.at(tmp_path / "home").open(tmp_path / "mine").tasks)
    assert ["no task asks for a gist" in fault for fault in faults] == [True] * (
        template is StudyTemplate.GIST
    )
    assert "Ctrl+G" in study.texts.consent
    assert set(study.protocol.primary_contrast) <= {condition.id for condition in study.condition}
    assert all(condition.words for condition in study.condition)
    assert all(study.questionnaires_at(moment) for moment in (Moment.BEFORE, Moment.AFTER_TASK, Moment.AFTER))
    asked = [item.id for form in study.questionnaires_at(Moment.AFTER_TASK) for item in form.item]
    assert {"ease", "seen_before", "aids_ai"} <= set(asked)
