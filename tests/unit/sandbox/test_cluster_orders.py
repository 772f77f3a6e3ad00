"""Whatever a cluster's worker gets is a function's name and JSON: no object of this process is pickled."""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

import gistpoint.sandbox.cluster
import gistpoint.sandbox.cluster_steps
from gistpoint.core.corruption.blind.packets import Packet
from gistpoint.core.generation.by_model import ModelTerms
from gistpoint.core.generation.campaign import control, decide
from gistpoint.core.generation.candidates import CorruptionCandidate
from gistpoint.core.generation.context import Context, close_contexts
from gistpoint.core.generation.readings import read_packet
from gistpoint.core.generation.settings import CampaignMode, CampaignSettings
from gistpoint.core.generation.spending import SetSpending
from gistpoint.core.generation.verdicts import Specimen
from gistpoint.core.orders import ClusterJob, introduce, stop_jobs
from gistpoint.core.tasks.model import Target
from gistpoint.object_graph import build_worker_services
from gistpoint.sandbox.cluster import ClusterWorkerPool, _Sent
from gistpoint.sandbox.cluster_steps import STEPS, StepExecutor, StepOrder, read_order
from gistpoint.sandbox.pools import SandboxHarness
from gistpoint.sessions.agentruns.cluster_work import attempted, replayed

SENDERS = (gistpoint.sandbox.cluster, gistpoint.sandbox.cluster_steps)
"""The modules that hold a client of Dask."""
CONTEXT = Context(
    Path("/cache/library"),
    SandboxHarness("plain", True, Path("/cache")),
    CampaignSettings(CampaignMode.REMOVE, seed=1, min_failing=3),
    terms=ModelTerms("examples", SetSpending(Path("/cache/spent"), 3, 1.5)),
)
SUBJECTS = {
    "decide": (decide, CorruptionCandidate("a.py::f", "key", ("a.py::g",), 2, "stratum")),
    "control": (
        control,
        Specimen((Target("a.py", "f", "old", "new"),), "finished", ("t",), False),
    ),
    "read": (read_packet, Packet(1, ("a", "b"), 0, frozenset({2, 5}))),
}


class RecordingClient:
    """A client of Dask that records what would be sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, ...]] = []

    def submit(self, *given: Any, pure: bool, **_: Any) -> Future[Any]:
        assert not pure
        self.sent.append(given)
        return Future()


def names_in(value: object) -> set[str]:
    """Return the modules and names to which a pickled value refers."""
    found, texts = set(), list[str]()
    for operation, argument, _ in pickletools.genops(io.BytesIO(pickle.dumps(value, protocol=4))):
        if "UNICODE" in operation.name:
            texts.append(str(argument))
        elif operation.name == "STACK_GLOBAL":
            found.add(".".join(texts[-2:]))
    return found


@pytest.mark.parametrize("work", [attempted, replayed])
def test_an_order_of_a_run_is_bytes(work: Callable[..., bytes]) -> None:
    client = RecordingClient()
    pool = ClusterWorkerPool(client, "", lambda sentence: None)
    job = ClusterJob("key", "label", lambda: b"{}", lambda: b"archive")
    pool._submit(partial(work, build=build_worker_services), _Sent(job, frozenset(), with_archive=True))
    ((function, *given),) = client.sent
    assert [type(one) for one in given] == [bytes, bytes]
    assert (function.func, function.args, function.keywords) == (
        *(work, ()),
        {"build": build_worker_services},
    )


@pytest.mark.parametrize("name", STEPS)
def test_a_step_of_generation_is_an_order(name: str) -> None:
    client = RecordingClient()
    step, subject = SUBJECTS[name]
    StepExecutor(client).submit(step, CONTEXT, subject)
    ((function, order),) = client.sent
    assert function is gistpoint.sandbox.cluster_steps.stepped
    assert msgspec.json.decode(order)["step"] == name
    assert set(msgspec.json.decode(order)) == set(StepOrder.__struct_fields__)
    assert read_order(order) == (step, CONTEXT, subject)
    assert read_order(order)[1].terms == CONTEXT.terms


@pytest.mark.parametrize(
    "function",
    [
        introduce,
        stop_jobs,
        close_contexts,
        gistpoint.sandbox.cluster_steps.stepped,
        partial(attempted, build=build_worker_services),
        partial(replayed, build=build_worker_services),
    ],
)
def test_functions_are_sent_by_name(function: Callable[..., Any]) -> None:
    own = {name for name in names_in(function) if not name.startswith(("functools.", "builtins."))}
    parts = [function.func, build_worker_services] if isinstance(function, partial) else [function]
    assert own == {f"{part.__module__}.{part.__qualname__}" for part in parts}


def test_nothing_else_is_sent() -> None:
    """Every call that reaches a worker is one of those above."""
    calls = {
        *(r"client\.run\(\s*close_contexts\)", r"client\.run, introduce,", r"client\.run, stop_jobs,"),
        *(
            r"client\.submit,\s+work,\s+msgspec\.json\.encode\(order\),",
            r"client\.submit\(stepped, ordered\(",
        ),
    }
    found = "".join(Path(str(module.__file__)).read_text("utf-8") for module in SENDERS)
    sending = re.findall(r"client\.(?:run|submit)\b", found)
    assert all(len(re.findall(call, found)) == 1 for call in calls)
    assert len(sending) == len(calls)
