"""The confirmatory model in words, the same in the pre-registration, the methods and the report."""

from __future__ import annotations

from gistpoint.core.study.declaration import PrimaryOutcome, Study

_SHARES = {
    PrimaryOutcome.SOLVE_RATE: (
        "solved",
        "An attempt that was given up or ended at a limit counts as not solved.",
    ),
    PrimaryOutcome.FIDELITY: (
        "fidelity",
        "An attempt that handed in no gist, because it was given up or ended at a limit, has the fidelity 0."
        " Mocked gists have no fidelity and are left out.",
    ),
}


LIMITS_OF_TIMES = (
    "Times of attempts that ended at a limit are censored at that time. In curves of times, giving up and"
    " skipping count once as censored and once as a competing event, as two bounds; in regressions of times"
    " and of rates of solving, and in the minutes of tasks, they count as censored."
)


def confirmatory_model(study: Study) -> str:
    """Return the model of the primary outcome, with its formula, its covariates and the treatment of limits.

    Formulas are in the notation of lme4.
    """
    protocol = study.protocol
    compares_times = protocol.primary is PrimaryOutcome.TIME_TO_SOLVE and len(protocol.primary_contrast) == 2
    if compares_times or protocol.primary is PrimaryOutcome.TIME_RATIO:
        return (
            "Censored linear mixed model with normal errors by restricted maximum likelihood, ln(minutes) ~"
            " condition + position + (1 | task) + (1 | person), on every attempt under both conditions, where"
            " position is the place of the task in the person's order; the estimate is exp of the coefficient"
            " of condition. Attempts that were given up or ended at a limit are censored at their time."
        )
    if protocol.primary is PrimaryOutcome.TIME_TO_SOLVE:
        return (
            "Censored linear mixed model with normal errors by restricted maximum likelihood, ln(minutes) ~ 1"
            " + (1 | task) + (1 | person); the estimate is exp of the constant, the median. Attempts that"
            " were given up or ended at a limit are censored at their time."
        )
    outcome, limits = _SHARES[protocol.primary]
    if len(protocol.primary_contrast) == 2:
        return (
            f"Linear mixed model by restricted maximum likelihood, {outcome} ~ side + (1 | task) +"
            " (1 | person), on every attempt of both sides, without covariates; the estimate is the"
            f" coefficient of side. {limits}"
        )
    return f"Mean over attempts, {outcome} ~ 1, without covariates. {limits}"
