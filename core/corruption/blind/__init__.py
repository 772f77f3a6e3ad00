"""Blind readings of functions: versions shown to readers, their answers, and verdicts on corruptions.

The public names are in this module; the modules inside are private.
"""

from gistpoint.core.corruption.blind.judging import (
    MOST_TIMES,
    JudgeRequest,
    ModelAnswer,
    judge,
    judging_prompt,
    prompt_sha256,
    questions,
    read_answer_of,
)
from gistpoint.core.corruption.blind.packets import (
    PACKET_TEMPLATE,
    UNTOUCHED,
    Basis,
    Named,
    Packet,
    PacketReading,
    packet_prompt,
    packet_sha256,
)
from gistpoint.core.corruption.blind.reading import (
    BlindAnswer,
    BlindItem,
    GlanceScore,
    GlanceVerdict,
    ShownVersion,
    blind_items,
    in_order,
)

__all__ = [
    "MOST_TIMES",
    "PACKET_TEMPLATE",
    "UNTOUCHED",
    "Basis",
    "BlindAnswer",
    "BlindItem",
    "GlanceScore",
    "GlanceVerdict",
    "JudgeRequest",
    "ModelAnswer",
    "Named",
    "Packet",
    "PacketReading",
    "ShownVersion",
    "blind_items",
    "in_order",
    "judge",
    "judging_prompt",
    "packet_prompt",
    "packet_sha256",
    "prompt_sha256",
    "questions",
    "read_answer_of",
]
