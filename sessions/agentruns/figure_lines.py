"""The figures of a run in words, for people: one line for each figure."""

from __future__ import annotations

from collections.abc import Mapping

from gistpoint.core.text import plural
from gistpoint.sessions.agentruns.figures import RunFigures
from gistpoint.sessions.agentruns.rates import rate_words, repeat_lines


def solved_line(totals: RunFigures) -> str:
    """Return the rate of solved jobs, with bounds while outcomes are missing; without a rate, the reason."""
    if not totals.counted and not totals.missing:
        return "no job needed an attempt" if totals.refused else "there are no jobs"
    return rate_words(totals.solved, totals.solved_bounds)


def _solved(totals: RunFigures) -> dict[str, str]:
    if not totals.to_be_read:
        return {"solved": solved_line(totals)}
    return {
        "solved": f"{solved_line(totals)}; {totals.to_be_read} more to be read",
        "solved, including those to be read": rate_words(
            totals.solved_with_unread, totals.solved_with_unread_bounds
        ),
    }


def _without_an_outcome(totals: RunFigures, run: str) -> dict[str, str]:
    """Return the lines on jobs that are in no rate, with the commands that can change that."""
    lines = {}
    if totals.halted:
        lines["halted"] = (
            f"{totals.halted} of {totals.jobs}, in no rate: `gistpoint agent resume {run}` continues,"
            f" `gistpoint agent settle {run}` decides"
        )
    if totals.excluded:
        reasons = ", ".join(f"{count} {reason}" for reason, count in totals.excluded.items())
        lines["excluded"] = f"{sum(totals.excluded.values())} of {totals.jobs}, in no rate: {reasons}"
    if totals.mixed:
        lines["mixed"] = f"{totals.mixed} by a person and a model, not counted in any rate"
    if totals.refused:
        lines["without an attempt"] = str(totals.refused)
    return lines


def _by_tests(totals: RunFigures) -> dict[str, str]:
    if totals.by_tests is None or not totals.confirmation:
        return {}
    standings = ", ".join(f"{count} {name}" for name, count in totals.confirmation.items())
    words = rate_words(totals.by_tests, totals.by_tests_bounds)
    return {"solved by the tests alone": f"{words}: {standings}"}


def summary_lines(totals: RunFigures, run: str) -> Mapping[str, str]:
    """Return the figures in words, by their labels. `run` is the name of the run, for commands."""
    lines: dict[str, str] = {"jobs": f"{totals.jobs}, {totals.ended} ended, {totals.left} left"}
    lines.update(_solved(totals))
    lines.update(_by_tests(totals))
    lines.update(repeat_lines(totals.repeats))
    lines.update(_without_an_outcome(totals, run))
    lines["reasons"] = (
        ", ".join(f"{count} {reason}" for reason, count in totals.reasons.items()) or "none yet"
    )
    if totals.never_called:
        lines["without a call"] = (
            f"{totals.never_called}. `gistpoint show ATTEMPT` prints what the model wrote. If it"
            " wrote calls as text, configure the server for the form in which the model writes calls"
        )
    if totals.unread_calls:
        lines["calls as text"] = (
            f"in the replies of {plural(totals.unread_calls, 'attempt')}, which the server did not recognise"
            " as calls. `gistpoint agent run --calls text` reads them, in a separate run"
        )
    if totals.calls_per_attempt is not None and totals.submissions_per_attempt is not None:
        lines["per attempt"] = (
            f"{totals.calls_per_attempt:.1f} calls, {totals.submissions_per_attempt:.1f} submissions"
        )
    if totals.malformed is not None:
        lines["malformed calls"] = f"{totals.malformed.words}"
    lines.update(_costs(totals))
    if totals.misdated:
        lines["dates"] = (
            f"{plural(totals.misdated, 'attempt')} on a machine whose clock was wrong (--json: clock_ms)"
        )
    return lines


def _costs(totals: RunFigures) -> dict[str, str]:
    lines: dict[str, str] = {}
    about = "about " if totals.estimated else ""
    written = f", {totals.written_tokens:,} written to a cache" if totals.written_tokens else ""
    lines["tokens"] = (
        f"{about}{totals.prompt_tokens:,} sent ({totals.cached_tokens:,} cached{written}), "
        f"{totals.completion_tokens:,} received ({totals.reasoning_tokens:,} reasoning)"
    )
    if totals.lost_tokens:
        abandoned = " and in abandoned attempts" if totals.abandoned_s else ""
        lines["lost"] = f"about {totals.lost_tokens:,} tokens in requests without a reply{abandoned}"
    about_cost = "about " if totals.estimated or totals.lost_tokens else ""
    lines["cost"] = "unknown" if totals.cost_usd is None else f"{about_cost}${totals.cost_usd:.4f}"
    lines["time"] = (
        f"{totals.wall_s:.0f} s in attempts: {totals.model_s:.0f} s by the model,"
        f" {totals.endpoint_wait_s:.0f} s waiting to send a request again, {totals.lost_s:.0f} s in requests"
        f" without a reply; {plural(totals.retried, 'request')} sent again before a reply"
    )
    if totals.abandoned_s:
        lines["abandoned"] = f"{totals.abandoned_s:.0f} s in attempts that a scaffold could not continue"
    return lines
