"""The words for the names of metrics and outcomes in figures and tables; files keep the names."""

from __future__ import annotations

import re
from collections.abc import Mapping

_WORDS: Mapping[str, str] = {
    "code_lines": "lines of code",
    "cyclomatic_paper": "cyclomatic complexity (paper)",
    "halstead_difficulty_paper": "Halstead difficulty (paper)",
    "halstead_volume_paper": "Halstead volume (paper)",
    "halstead_difficulty": "Halstead difficulty",
    "halstead_volume": "Halstead volume",
    "harmonic_out": "outgoing harmonic centrality",
    "harmonic_in_raw": "incoming harmonic centrality (raw)",
    "harmonic_in": "incoming harmonic centrality",
    "distance_discount": "discounted distance",
    "in_degree": "number of callers",
    "out_degree": "number of callees",
    "gist_calls": "function calls of the test",
    "gist_files": "files touched by the test",
    "solve_rate": "share solved",
    "time_ratio": "ratio of times",
    "time_to_solve": "time to solve",
    "gave_up": "gave up",
    "time_cap": "time limit",
    "submissions_exhausted": "submissions used up",
    "calls_exhausted": "tool uses used up",
    "steps_exhausted": "steps used up",
    "final_wrong": "final answer wrong",
    "not_comparable": "not comparable",
    "merge_after_changes": "merge after changes",
    "line_execution": "line execution",
    "line_existence": "line existence",
    "test_recall": "test recall",
    "pass_rate": "pass rate",
    "not_isolated": "not isolated",
    "chain_broken": "journal damaged",
}
_ALONE: Mapping[str, str] = {
    "cyclomatic": "cyclomatic complexity",
    "nesting": "nesting depth",
    "degree": "callers and callees",
    "pagerank": "PageRank",
}
"""Names that are also ordinary words, so they are replaced only if they are the whole label."""
_NAME = re.compile(rf"(?<![\w/.`-])({'|'.join(map(re.escape, _WORDS))})(?![\w/.`-])")


def in_words(text: str) -> str:
    """Return a label or a sentence with words in place of the names of metrics and outcomes."""
    if text in _ALONE:
        return _ALONE[text]
    return _NAME.sub(lambda found: _WORDS[found[1]], text)
