"""Asks a model to rewrite a function: a rewrite that fails tests is an unplanted fault (decision 139)."""

from __future__ import annotations

from dataclasses import replace

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.code.index import index_source
from gistpoint.core.code.names import FunctionRef
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.source_text import python_text
from gistpoint.core.corruption.gates import Gate
from gistpoint.core.corruption.reduction import missing_feature
from gistpoint.core.corruption.rewriting import RewriteLoop, rewriting_prompt
from gistpoint.core.corruption.rounds import LoopSettings
from gistpoint.core.errors import SourceError
from gistpoint.core.generation.by_model import REWRITE, ModelCorruption, reading
from gistpoint.core.generation.intake import NoTaskError
from gistpoint.core.generation.removal import removal_target
from gistpoint.core.generation.trials.discovery import fault, prove_best
from gistpoint.core.generation.trials.history import GONE, code_of_tests
from gistpoint.core.generation.trials.model import (
    ModelProbing,
    RatedModelCorruption,
    asked_model,
    require_kept,
)
from gistpoint.core.generation.trials.trial import CandidateDropped, CandidateTrial
from gistpoint.core.generation.verdicts import CandidateVerdict, Reason
from gistpoint.core.tasks.model import Target, ToolLimits
from gistpoint.core.tasks.trees import corrupted_tree
from gistpoint.core.tools.declaration import ToolContext


def decide_rewrite(trial: CandidateTrial) -> CandidateVerdict:
    """Return the verdict with the model's rewrite of the candidate, proven by the whole suite.

    The rewritten body is kept whole, below the function's own header and docstring. Raises `CandidateDropped`
    if the rewrite does what the function does or can't become a task, and `EndpointError` if the failure
    would affect every candidate.
    """
    probing = ModelProbing(trial, trial.settings.band)
    made = _rewritten(trial, probing)
    require_kept(trial, made)
    rated = probing.rated(made)
    _require_fault(trial, rated)
    return prove_best(trial, [rated])


def _rewritten(trial: CandidateTrial, probing: ModelProbing) -> ModelCorruption:
    """Return the result of the conversation about the candidate.

    Raises `CandidateDropped` if the function's body can't be removed.
    """
    library, name = trial.library, trial.candidate.name
    tree, ref = library.intake.repository.tree, FunctionRef.parse(trial.candidate.name)
    try:
        stub = removal_target(tree, name, library.test_files).corrupted
        prompt = rewriting_prompt(tree, ref.path, ref.qualname, stub)
    except (NoTaskError, SourceError, CodeError) as error:
        raise CandidateDropped(Reason.NOT_REMOVABLE, str(error)) from error
    model, spending = asked_model(trial), trial.context.terms.spending
    definition = index_source(ref.path, tree.read(ref.path)).get(ref.qualname)
    original, scope = definition.dedented, library.vocabulary.scope(definition)
    gate = Gate(original, scope, most_lines=None)

    def unusable(target: Target) -> str:
        refusal = gate.unusable(target.corrupted)
        return "" if refusal is None else str(refusal)

    least, most = trial.settings.band
    settings = trial.settings.loop or LoopSettings(feedback_rounds=0)
    loop = RewriteLoop(
        model,
        ToolContext(tree, ToolLimits(), name, library.test_files),
        ref,
        prompt,
        unusable,
        probing,
        replace(settings, min_failing=least, most_failing=most),
        cancel=trial.context.run.cancel,
        read=reading(original, scope, lambda target: trial.context.scorer.scores([target])[0]),
        meter=None if spending is None else spending.conversation(),
    )
    return ModelCorruption(ref, sha256_of_text(original), loop.run(), kind=REWRITE)


def _require_fault(trial: CandidateTrial, rated: RatedModelCorruption) -> None:
    """Raise `CandidateDropped` unless the rewrite is good, with a fault that its author could have avoided.

    The author, a model, can't know which names the library does not have, or which features only tests need.
    """
    target, report = rated.target, rated.report
    errors = [failure.error_type for failure in report.failed.values()]
    if GONE.intersection(errors):
        trial.count_outcome(f"{REWRITE}: uses what is not there")
        raise CandidateDropped(Reason.NONE_GOOD, "it uses names or attributes that the library does not have")
    tree = trial.library.intake.repository.tree
    file = python_text(corrupted_tree(tree, (target,)).read(target.path))
    feature = missing_feature(target.original, file, code_of_tests(tree, report.failed), errors)
    if feature and not trial.settings.missing_features:
        trial.count_outcome(Reason.MISSING_FEATURE.value)
        raise CandidateDropped(Reason.MISSING_FEATURE, f"it has no {feature!r}")
    entering = trial.library.entering(target.name)
    if not (rated.good and entering.issuperset(report.failed)):
        why = fault(rated.evidence, trial.settings.band[0])
        trial.count_outcome(why)
        raise CandidateDropped(Reason.NONE_GOOD, why.replace("_", " "))
    trial.count_outcome("good")
