"""The steps of generation on a cluster: each is sent as JSON.

The worker makes its own harness from it (decision 190).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from gistpoint.core.corruption.blind import Packet
from gistpoint.core.decoding import decodable
from gistpoint.core.errors import InfrastructureError
from gistpoint.core.generation.by_model import ModelTerms
from gistpoint.core.generation.campaign import Workers, control, decide
from gistpoint.core.generation.candidates import CorruptionCandidate
from gistpoint.core.generation.context import Context, close_contexts
from gistpoint.core.generation.readings import read_packet
from gistpoint.core.generation.settings import CampaignSettings
from gistpoint.core.generation.verdicts import Specimen
from gistpoint.core.text import bounded
from gistpoint.sandbox.cluster import connected, unfit_workers
from gistpoint.sandbox.pools import SandboxHarness

STEPS: dict[str, tuple[Callable[[Context, Any], Any], type]] = {
    "decide": (decide, CorruptionCandidate),
    "control": (control, Specimen),
    "read": (read_packet, Packet),
}
"""Each step by name: the function that a worker calls, and the type of its subject."""


class StepOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A step of generation, as sent to a worker; its paths are those on this machine."""

    step: str
    folder: Path
    """The folder of the library, which the worker finds under the same path."""
    backend: str
    consented: bool
    cache: Path
    settings: CampaignSettings
    terms: ModelTerms
    subject: msgspec.Raw


def ordered(step: Callable[[Context, Any], Any], context: Context, subject: object) -> bytes:
    """Return the encoded order for a step; the harness of `context` must be a `SandboxHarness`.

    Raises `KeyError` if workers do not know the step.
    """
    name = {function: name for name, (function, _) in STEPS.items()}[step]
    harness = context.harness
    assert isinstance(harness, SandboxHarness)
    return msgspec.json.encode(
        StepOrder(
            step=name,
            folder=context.folder,
            backend=harness.backend,
            consented=harness.consented,
            cache=harness.cache,
            settings=context.settings,
            terms=context.terms,
            subject=msgspec.Raw(msgspec.json.encode(subject)),
        ),
        enc_hook=str,
    )


def read_order(order: bytes) -> tuple[Callable[[Context, Any], Any], Context, Any]:
    """Return the function of an encoded order, its context and its subject.

    Raises `msgspec.MsgspecError` or `KeyError` if it is not an order.
    """
    given = msgspec.json.decode(order, type=decodable(StepOrder), dec_hook=lambda kind, value: kind(value))
    function, kind = STEPS[given.step]
    harness = SandboxHarness(given.backend, given.consented, given.cache)
    context = Context(given.folder, harness, given.settings, terms=given.terms)
    return function, context, msgspec.json.decode(given.subject, type=decodable(kind))


def stepped(order: bytes) -> Any:
    """Do the step of an encoded order, and return its result; workers import this function by name."""
    function, context, subject = read_order(order)
    return function(context, subject)


class StepExecutor:
    """Has a cluster do the steps of generation; a step is done again each time it is submitted."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Do a step in a worker with a context and a subject, and return the future for its result.

        The future gets an `InfrastructureError` if the result can't be read in this process.
        """
        # Not pure: Dask would otherwise return the result of an equal step that failed or was stopped.
        sent = self._client.submit(stepped, ordered(fn, *args), pure=False)
        future: Future[Any] = Future()
        future.add_done_callback(partial(_pass_cancel, sent))
        # Dask's own executor never settles the future of a result that can't be read.
        sent.add_done_callback(partial(_settle, future))
        return future


def _pass_cancel(sent: Any, future: Future[Any]) -> None:
    if future.cancelled() and not sent.cancelled():
        sent.cancel()


def _settle(future: Future[Any], sent: Any) -> None:
    """Give `future` the outcome of the step that Dask has done."""
    if sent.cancelled():
        future.cancel()
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = sent.result()
    except Exception as error:
        if sent.status == "error":
            future.set_exception(error)
            return
        why = f"{type(error).__name__}: {bounded(str(error), 200)}"
        future.set_exception(
            InfrastructureError(f"A worker of the cluster returned a result that can't be read ({why}).")
        )
    else:
        future.set_result(result)


@contextmanager
def cluster_workers(address: str) -> Iterator[Workers]:
    """Yield the workers of the Dask cluster whose scheduler is at `address`.

    Raises `UserError` if Dask is not installed, and `InfrastructureError` if the cluster can't be reached,
    has no worker, or has a worker that can't work for this process.
    """
    with connected(address) as client:
        cores: int = sum(client.ncores().values())
        if not cores:
            raise InfrastructureError(
                f"The scheduler at {address} has no worker.", hint=f"dask worker {address}"
            )
        if unfit := unfit_workers(client):
            raise InfrastructureError(
                f"The workers of the cluster at {address} can't work for this machine. {' '.join(unfit)}",
                hint="Install the same gistpoint and Python everywhere, and start these workers again.",
            )
        try:
            yield Workers(StepExecutor(client), cores)
        finally:
            client.run(close_contexts)
