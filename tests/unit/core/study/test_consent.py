"""The text that participants read before they agree, and the copy that they keep."""

from __future__ import annotations

import msgspec
from study_parts import declared

from gistpoint.core.study.consent import consent_copy, consent_words, privacy_words, shown_sha256
from gistpoint.core.study.declaration import Assistance, ChatSettings, Condition, Privacy, Texts

TEXTS = Texts(
    welcome="Welcome.",
    consent="It takes two hours.",
    consent_version="3 (board, 2 May)",
    consent_items=("[required] Yes, I do", "[tasks] My failures may become tasks"),
    rules="None.",
)


def with_chat(recipient: str = "") -> str:
    chat = Condition(id="chat", assistance=Assistance.CHAT, chat=ChatSettings(model="model-x"))
    study = msgspec.structs.replace(declared(), condition=(Condition(id="alone"), chat))
    privacy = Privacy(contact="the lab", chat_recipient=recipient)
    return privacy_words(msgspec.structs.replace(study, privacy=privacy))


def test_who_is_responsible_and_how_long_data_are_kept_is_always_said() -> None:
    study = declared()
    kept = Privacy(contact="lab@example.org", controller="The lab", legal_basis="Art. 6", retention_days=30)
    assert privacy_words(msgspec.structs.replace(study, privacy=kept)) == (
        "Responsible for your data: The lab\n\nLegal basis: Art. 6\n\nYour data will be erased after 30"
        " days.\n\nQuestions and complaints: lab@example.org"
    )
    never = privacy_words(msgspec.structs.replace(study, privacy=Privacy(contact="a")))
    assert "No time is set" in never
    words = privacy_words(
        msgspec.structs.replace(study, privacy=Privacy(contact="a", retention="Ten years."))
    )
    assert words.startswith("Ten years.")


def test_a_chat_says_what_it_sends_and_to_whom() -> None:
    assert "chat" not in privacy_words(declared())
    assert "(model-x)" in with_chat()
    assert "Some tasks have a chat" in with_chat()
    assert "the code in your editor to whoever runs that model" in with_chat()
    assert "to Example Ltd, Oslo. Your code name is not sent." in with_chat("Example Ltd, Oslo")


def test_a_copy_has_version_text_items_and_the_day() -> None:
    study = msgspec.structs.replace(declared(), texts=TEXTS)
    text = consent_copy(study, [True, False], 1_780_000_000_000, "9.9")
    assert "Version of this text: 3 (board, 2 May)" in text
    assert "Agreed to on 2026-05-28 (UTC)." in text
    assert "[x] Yes, I do   (needed)\n[ ] My failures may become tasks" in text
    assert " ".join(consent_words(study).split()) in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 78
    assert shown_sha256(study)[:16] in text
    assert "Not agreed to yet." in consent_copy(study, None, None, "9.9")


def test_the_fingerprint_covers_text_items_and_privacy() -> None:
    study = msgspec.structs.replace(declared(), texts=TEXTS)
    other_items = msgspec.structs.replace(TEXTS, consent_items=("[required] Yes",))
    changed = [
        msgspec.structs.replace(study, privacy=Privacy(contact="another")),
        msgspec.structs.replace(study, texts=other_items),
        msgspec.structs.replace(study, texts=msgspec.structs.replace(TEXTS, consent="Three hours.")),
    ]
    assert len({shown_sha256(one) for one in [study, *changed]}) == 4
