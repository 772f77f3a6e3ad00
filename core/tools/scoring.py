"""`score_gist` and `submit_gist`: what the gist is worth, before and at the hand-in."""

from __future__ import annotations

from collections.abc import Mapping

from gistpoint.core.tools.declaration import Activity, Argument, Group, Kind, Tool, ToolContext, ToolOutput
from gistpoint.core.tools.edit_gist import accepted


def _score(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    content = arguments["content"]
    return ToolOutput("", judged=accepted(context, "write_gist", arguments) if content else context.desk.text)


def _submit(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    return ToolOutput("", judged=context.desk.text)


SCORE_GIST = Tool(
    name="score_gist",
    description="Score the gist as it stands, or another text in its place, and change nothing. It costs no step.",
    arguments=(Argument("content", Kind.CODE, "Scored in place of the gist; empty for the gist itself.", default=""),),
    group=Group.INFO,
    activity=Activity.EXECUTE,
    run=_score,
    runs_code=True,
)

SUBMIT_GIST = Tool(
    name="submit_gist",
    description="Hand in the gist as it stands. It is scored, and the attempt ends.",
    arguments=(),
    group=Group.SUBMIT,
    activity=Activity.OTHER,
    run=_submit,
    runs_code=True,
)
