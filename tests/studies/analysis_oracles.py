"""Compares gistpoint's estimators with those of other programs, each in a separate environment.

    PYTHONPATH=src:tests OPENBLAS_NUM_THREADS=1 uv run python tests/studies/analysis_oracles.py LAB [NAME ...]

LAB is a folder for the environments. Each oracle gets and returns JSON. Prints the largest difference of
each; exit code 1 if one exceeds its bound.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from gistpoint.core.analysis.firth import fit_logit, penalised_ratio
from gistpoint.core.analysis.horizon import fit_horizon
from gistpoint.core.analysis.regression import likelihood_ratio_p


@dataclass(frozen=True)
class Oracle:
    """An estimator of another program."""

    packages: tuple[str, ...]
    script: str
    """A program that reads data from standard input and writes its answer to standard output."""
    cases: Callable[[], list[Any]]
    compare: Callable[[Any, Any], float]
    """A function that returns the largest difference, given a case and the oracle's answer."""
    bound: float
    words: str


# Firth's logit


def firth_cases() -> list[dict[str, Any]]:
    """Return random regressions, some of which are separated."""
    draw = np.random.default_rng(11)
    cases = []
    for rows, slopes in (
        (30, (-0.7,)),
        (60, (-0.7, 0.3)),
        (20, (-4.0,)),
        (16, (-9.0, 0.0)),
        (200, (0.1, -0.2, 0.5)),
    ):
        for _ in range(8):
            x = draw.normal(size=(rows, len(slopes)))
            y = draw.random(rows) < 1 / (1 + np.exp(-(0.4 + x @ np.array(slopes))))
            if 2 <= y.sum() <= rows - 2:
                cases.append({"x": x.tolist(), "y": y.astype(int).tolist()})
    return cases


FIRTH = """
import json, sys
import numpy as np
from firthlogist import FirthLogisticRegression
made = []
for case in json.load(sys.stdin):
    fit = FirthLogisticRegression(skip_ci=True, max_iter=500, tol=1e-9).fit(np.array(case["x"]), np.array(case["y"]))
    coefficients = [float(fit.intercept_), *map(float, fit.coef_)]
    made.append({"coefficients": coefficients, "penalised": float(fit.loglik_), "p": fit.pvals_.tolist(),
                 "errors": [float(fit.bse_[-1]), *map(float, fit.bse_[:-1])]})
json.dump(made, sys.stdout)
"""


def firth_difference(case: dict[str, Any], theirs: dict[str, Any]) -> float:
    """Return the largest difference in coefficients, standard errors and penalised likelihood.

    It is infinite if nothing can be fitted. A p that is too small also counts as a difference. firthlogist
    fits the model without a column by the leverage of the other columns, but judges the fit by the penalty of
    all columns, although these are not equivalent. Its smaller model is not at its maximum, so its p is never
    greater than that of the ratio.
    """
    x = np.column_stack([np.ones(len(case["y"])), np.array(case["x"])])
    y = np.array(case["y"], dtype=float)
    ours = fit_logit(x, y, firth=True)
    if ours is None:
        return float("inf")
    ratios = [penalised_ratio(x, y, column) for column in range(1, x.shape[1])]
    ps = [likelihood_ratio_p(ratio) for ratio in ratios if ratio is not None]
    gaps = [
        np.abs(ours.coefficients - np.array(theirs["coefficients"])).max(),
        abs(ours.penalised - theirs["penalised"]),
        np.abs(ours.standard_errors - np.array(theirs["errors"])).max(),
        max(0.0, *(np.array(theirs["p"][: len(ps)]) - np.array(ps))),
    ]
    return float(max(gaps))


# The horizon


def horizon_cases() -> list[dict[str, Any]]:
    """Return tasks from seconds to days, with a model of any strength and some fractional scores."""
    made = []
    for seed in range(100):
        draw = np.random.default_rng(seed)
        size = int(draw.integers(10, 200))
        minutes = np.exp(draw.normal(3, 2, size))
        chance = 1 / (1 + np.exp(draw.uniform(0.2, 1.2) * (np.log2(minutes) - draw.uniform(0, 8))))
        scores = (draw.random(size) < chance).astype(float)
        scores[: size // 5] = draw.random(size // 5)
        weights = draw.uniform(0.05, 1, size)
        made.append({"minutes": minutes.tolist(), "scores": scores.tolist(), "weights": weights.tolist()})
    return made


HORIZON = """
import json, sys
import numpy as np
from sklearn.linear_model import LogisticRegression
found = []
for case in json.load(sys.stdin):
    x = np.log2(np.array(case["minutes"]))[:, None]
    score, weight = np.array(case["scores"]), np.array(case["weights"])
    weight = weight / weight.sum()
    label = np.concatenate([np.ones(len(x)), np.zeros(len(x))])
    fit = LogisticRegression(C=1 / 0.1, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    fit.fit(np.concatenate([x, x]), label, sample_weight=np.concatenate([weight * score, weight * (1 - score)]))
    found.append([float(fit.coef_[0, 0]), float(fit.intercept_[0])])
json.dump(found, sys.stdout)
"""


def horizon_difference(case: dict[str, Any], theirs: list[float]) -> float:
    """Return the larger of the differences in slope and intercept; infinity if nothing can be fitted."""
    ours = fit_horizon(*(np.array(case[name]) for name in ("minutes", "scores", "weights")))
    return float("inf") if ours is None else max(abs(ours.slope - theirs[0]), abs(ours.intercept - theirs[1]))


ORACLES: dict[str, Oracle] = {
    "horizon": Oracle(
        ("scikit-learn==1.9.1",),
        HORIZON,
        horizon_cases,
        horizon_difference,
        3e-10,
        "slope and intercept of METR's logit",
    ),
    "firth": Oracle(
        ("firthlogist==0.5.0", "scikit-learn==1.5.2"),
        FIRTH,
        firth_cases,
        firth_difference,
        1e-6,
        "coefficients, standard errors, penalised likelihood",
    ),
}


def ask(lab: Path, name: str, oracle: Oracle, cases: Sequence[Any]) -> list[Any]:
    """Return the answers of another program, in an environment that is made if necessary.

    Raises `SystemExit` if the program fails.
    """
    python = lab / name / "bin" / "python"
    if not python.is_file():
        subprocess.run(["uv", "venv", "-q", str(lab / name)], check=True)
    subprocess.run(
        ["uv", "pip", "install", "-q", "--python", str(python), *oracle.packages], check=True, cwd=lab
    )
    done = subprocess.run(
        [str(python), "-c", oracle.script], input=json.dumps(cases), capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr[-2000:]}")
    answers: list[Any] = json.loads(done.stdout)
    return answers


def firth_means(samples: int = 1_000, tasks: int = 100, slope: float = -0.671) -> tuple[float, float, float]:
    """Return the mean slopes of the plain and the penalised fit, and the standard error of the latter."""
    draw = np.random.default_rng(671)
    plain, firth = [], []
    for _ in range(samples):
        x = np.column_stack([np.ones(tasks), draw.normal(size=tasks)])
        y = (draw.random(tasks) < 1 / (1 + np.exp(-slope * x[:, 1]))).astype(float)
        one, other = fit_logit(x, y), fit_logit(x, y, firth=True)
        if one is not None and one.converged and other is not None:
            plain.append(float(one.coefficients[1]))
            firth.append(float(other.coefficients[1]))
    return float(np.mean(plain)), float(np.mean(firth)), float(np.std(firth) / sqrt(len(firth)))


def main() -> int:
    """Print each oracle's largest difference; return 1 if one exceeds its bound."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lab", type=Path)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(ORACLES)}; all by default")
    given = parser.parse_args()
    failed = False
    for name in given.names or ORACLES:
        oracle = ORACLES[name]
        cases = oracle.cases()
        answers = ask(given.lab, name, oracle, cases)
        worst = max(oracle.compare(case, answer) for case, answer in zip(cases, answers, strict=True))
        failed = failed or not worst <= oracle.bound
        print(
            f"{name}: {oracle.words}: {len(cases)} cases, largest difference {worst:.1e} (bound {oracle.bound:.0e})"
        )
    plain, firth, error = firth_means()
    print(
        f"true slope -0.671, 100 tasks: plain fits mean {plain:.3f}, Firth's {firth:.3f} (standard error {error:.3f})"
    )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
