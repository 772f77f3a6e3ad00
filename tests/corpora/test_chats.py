"""The chat of each sample is a sequence that the API of OpenAI accepts."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.sessions.test_chat_sequence import chats, faults
from unread_samples import samples

SAMPLES = Path(__file__).parents[3] / "shared" / "samples"
FILES = [path for path in sorted(SAMPLES.rglob("*")) if path.is_file()] if SAMPLES.is_dir() else []

if FILES:  # a user's checkout has none

    @pytest.mark.parametrize("path", samples(FILES, ()))
    def test_the_chat_of_a_sample_is_accepted(path: Path) -> None:
        for messages in chats(path):
            assert faults(messages) == []
