"""The message that something was said about a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from gistpoint.sessions.reviews.state import Review


class ReviewChanged(Message):
    """Something was said, or taken back; `first` where the run was just opened."""

    def __init__(self, review: Review, said: str = "", *, first: bool = False) -> None:
        super().__init__()
        self.review = review
        self.said = said
        self.first = first
