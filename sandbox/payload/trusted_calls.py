"""A pytest plugin for the tests' process, in which stubs ask another process for answers (decision 113).

Runs in the target's interpreter. Besides the keys of an ordinary run, the order has `stub` (the module that
the stubs of the tree import), `hidden` (files that the other process does not have), `learning`,
`all_changes`, `unset` (attributes that no answer may set), `runs` (digests of what the true function had run,
or null), and `functions`, a list with `answers` and `writes` for each function (see `Learned`). Besides the
records of a run, there are notes: `ask` (a line for the other process, whose answer comes over standard
input), `problem` (why a test can't count), `unmade` (an answer contained a change that the true function was
never seen to make), `of_test` (a function of the test raised, and whether that was swallowed), `forget` and
`learned`.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import re
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING or "." in __name__:
    from gistpoint.sandbox.payload.audit_events import is_of_tools, may_run_text, texts_of, what_runs
    from gistpoint.sandbox.payload.failed_checks import FailedChecks, rewrite_all
    from gistpoint.sandbox.payload.plain_data import Decoder, Encoder
    from gistpoint.sandbox.payload.plain_sides import CannotTravelError, Shared, UnseenNameError, type_name
    from gistpoint.sandbox.payload.results_plugin import (
        Registering,
        Results,
        close_input,
        moved_up,
        opened_channel,
        taken_order,
    )
    from gistpoint.sandbox.payload.surroundings import Surroundings, shape_of
    from gistpoint.sandbox.payload.trusted_side import Elsewhere, Learned, TestSide
else:
    from gistpoint_checks import FailedChecks, rewrite_all
    from gistpoint_events import is_of_tools, may_run_text, texts_of, what_runs
    from gistpoint_plain import Decoder, Encoder
    from gistpoint_results import Registering, Results, close_input, moved_up, opened_channel, taken_order
    from gistpoint_sides import CannotTravelError, Shared, UnseenNameError, type_name
    from gistpoint_surroundings import Surroundings, shape_of
    from gistpoint_trusted_side import Elsewhere, Learned, TestSide

_SHORTEST_TEXT = 3
_MOST_TEXTS = 2_000
_MOST_RUNS = 2_000
_LONGEST_TEXT = 300


class StubCalls:
    """The calls to the stubs in one run."""

    def __init__(
        self, order: dict[str, Any], root: str, put: Callable[..., None], answers: io.BufferedReader
    ) -> None:
        self.put = put
        self.answers = answers
        self.stub: str = order["stub"]
        self.side = TestSide(self, root, order["hidden"], order["unset"])
        self.learned = [
            Learned(
                learning=order["learning"],
                answers=known["answers"],
                writes=known["writes"],
                all_changes=order["all_changes"],
            )
            for known in order["functions"]
        ]
        self.asked: list[int] = []
        """The functions that are being called, innermost last."""
        self.shared: list[Shared] = []
        self.of_tests: list[list[BaseException]] = []
        """The exceptions that functions of the tests raised in each of these calls, innermost last."""
        self.numbered = 0
        self.in_test = False
        self.lock = threading.RLock()
        self.own = os.getpid()
        self.texts: set[str] = set()
        self.runs_text = ""
        self.began = time.time()
        self.learning: bool = order["learning"]
        self.ran: set[str] = set(order["runs"] or ())
        """Digests of what was compiled, unpickled and started while the true function answered."""
        self.knows_runs = self.learning or order["runs"] is not None
        self.checks = FailedChecks(self.report_of_test)
        self.around = Surroundings(self.side.singletons.is_of_tree)
        self.reporting = False
        """Whether pytest is describing a failure; pytest may then compile the test."""
        # Set before pytest imports anything of the tree. A hook can't be removed (PEP 578).
        sys.addaudithook(self.on_audit_event)

    # Called by stubs

    def call(self, function: int, values: dict[str, Any]) -> Any:
        """Return the other process's answer to a call to the stub whose local variables are `values`."""
        request = {"do": "call", "function": function, **shape_of(sys._getframe(1))}
        roots = [values[name] for name in request.pop("names")]
        found = self.start_call(function, request, roots)
        self.report_ended_block(roots, found)
        return found

    def generate(self, function: int, values: dict[str, Any]) -> Generator[Any, Any, Any]:
        """Yield the items of the generator that the other process makes for a call from `values`."""
        request = {"do": "call", "function": function, **shape_of(sys._getframe(1))}
        roots = [values[name] for name in request.pop("names")]
        found = self.start_call(function, request, roots)
        if not hasattr(type(found), "__next__"):
            raise self.problem("unseen", "it answers with all items at once, and not with an iterator")
        return (yield from found)

    def start_call(self, function: int, request: dict[str, Any], roots: list[Any]) -> Any:
        """Make a call with a new number, and return the answer.

        The call is an outermost one, or comes from a callback of the tests. Raises `CannotTravelError` if no
        test is running.
        """
        # A call during an import would count for whichever test imports the module first.
        if not self.in_test:
            raise self.problem("at_import", "it is called while modules are imported")
        self.numbered += 1
        shared = Shared(self.side, self.numbered)
        return self.exchange(function, {**request, "call": shared.call}, roots, shared)

    # The exchange

    def exchange(self, function: int, request: dict[str, Any], roots: list[Any], shared: Shared) -> Any:
        """Send a request with values; return the answer, or raise the exception that it contains.

        Raises `CannotTravelError` if there is no valid answer, or if this process was forked.
        """
        # A fork shares both pipes, so its messages would mix with those of this process.
        if os.getpid() != self.own:
            raise CannotTravelError("it is called in a process that the test forked")
        around = self.around.found()
        request = {**request, "around": around} if around else request
        with self.lock:
            self.asked.append(function)
            self.shared.append(shared)
            self.of_tests.append([])
            if request["do"] == "throw":
                # The failure of a check in a `with` block has to come out of the generator behind it.
                self.note_test_error(roots[0])
            try:
                self.send(request, roots, shared)
                found = self.result_of(self.reply(shared), shared, request["do"])
                self.report_swallowed(None)
                return found
            except CannotTravelError as error:
                raise self.problem("not_plain_data", str(error)) from None
            except UnseenNameError as error:
                raise self.problem("unseen", str(error)) from None
            except BaseException as error:
                self.report_swallowed(error)
                raise
            finally:
                # Even after an error, because a change that was not made may have caused it.
                self.report_unmade_change(self.learned[function])
                self.asked.pop()
                self.shared.pop()
                self.of_tests.pop()

    def note_test_error(self, error: BaseException) -> None:
        """Record an exception of the test that the current call has to pass on."""
        self.of_tests[-1].append(error)
        self.put("note", kind="of_test", what=_exception_text(error), swallowed=False)

    def report_swallowed(self, outcome: BaseException | None) -> None:
        """Report what the tests' functions raised in the current call, except for `outcome` itself.

        A test may make an assertion in such a function, whose failure only the submission can pass on. It
        counts as swallowed if it is merely the cause of another exception, which the test may expect.
        """
        for error in self.of_tests[-1]:
            if error is not outcome:
                self.put("note", kind="of_test", what=_exception_text(error), swallowed=True)

    def report_ended_block(self, roots: list[Any], answer: object) -> None:
        """Report the exceptions that a call was given after they were raised, if its answer is true.

        The call may be an `__exit__` under any name, or a function that an `__exit__` calls: it would end the
        block of a test in which a check has failed.
        """
        given = [part for root in roots for part in (root if type(root) is tuple else (root,))]
        for error in given:
            if isinstance(error, BaseException) and error.__traceback__ is not None and _is_true(answer):
                self.checks.report_once(_exception_text(error))

    def report_of_test(self, what: str) -> None:
        """Report an exception or a failed check of the test that might not reach the test."""
        if self.in_test and not self.reporting:
            for swallowed in (False, True):
                self.put("note", kind="of_test", what=what, swallowed=swallowed)

    def report_unmade_change(self, learned: Learned) -> None:
        """Write a note if an answer contained a change that the true function was never seen to make."""
        if learned.has_unmade_change:
            learned.has_unmade_change = False
            self.put("note", kind="unmade")

    def problem(self, reason: str, words: str) -> CannotTravelError:
        """Report why the test can't count, and return the exception to raise in it."""
        self.put("note", kind="problem", reason=reason, words=words[:300])
        return CannotTravelError(words)

    def send(self, request: dict[str, Any], roots: list[Any], shared: Shared) -> None:
        self.put("note", kind="ask", data={**request, **Encoder(shared).message(roots)})

    def reply(self, shared: Shared) -> dict[str, Any]:
        """Return the answer, after making the calls that the other process requests before it answers.

        Raises `CannotTravelError` if the other process sends anything but a valid message.
        """
        while True:
            reply = _reply(self.answers.readline() or b'{"re": "gone"}')
            self.repeat_side_effects(reply)
            if reply["re"] != "callback":
                return reply
            self.called_back(reply, shared)

    def result_of(self, reply: dict[str, Any], shared: Shared, do: str) -> Any:
        """Return the value in the reply to a request that asked to `do` something, or raise what it raised.

        Only an iterator can stop.
        """
        kind = reply["re"]
        if kind == "stop" and do not in ("next", "throw"):
            raise CannotTravelError("an answer that is not an iterator reports an end")
        if kind in ("value", "raised", "stop"):
            (value,) = decoded(shared, reply, 1)
            self.remember(value)
            if kind == "raised":
                raise _as_exception(value)
            return _Stop(value) if kind == "stop" else value
        raise self.problem(reply.get("reason", "sandbox"), reply.get("words", kind))

    def called_back(self, reply: dict[str, Any], shared: Shared) -> None:
        """Call a function of the tests, or advance an iterator, and send the result or the exception.

        Raises `CannotTravelError` if this process does not keep the function to be called.
        """
        stays = self.side.kept.get(reply["of"])
        arguments, keywords = decoded(shared, reply, 2)
        if stays is None or isinstance(stays, Elsewhere):
            raise CannotTravelError("the called object does not exist")
        request, root = {"do": "return"}, None
        try:
            root = next(stays) if reply["do"] == "next" else _call(stays, arguments, keywords)  # type: ignore[call-overload]
        except StopIteration as ended:
            request, root = {"do": "stop"}, ended.value
        # These end the test; any other exception travels as the result of the tests' function.
        except (CannotTravelError, UnseenNameError, KeyboardInterrupt):
            raise
        except BaseException as error:
            request, root = {"do": "raise"}, error
            if _was_entered(stays, error):
                self.note_test_error(error)
        self.send(request, [root], shared)

    def function(self, number: int, name: str, doc: Any) -> Callable[..., Any]:
        """Return a function whose calls are made in the other process."""
        function, shared = self.asked[-1], self.shared[-1]

        def elsewhere(*arguments: Any, **keywords: Any) -> Any:
            # The call that returned this function, not the latest one: the request is repeated only with
            # that call's number, and understood only with its objects (decision 135).
            request = {"do": "apply", "of": number, "call": shared.call}
            return self.exchange(function, request, [arguments, tuple(keywords.items())], shared)

        elsewhere.__name__ = elsewhere.__qualname__ = name
        elsewhere.__doc__ = doc
        return elsewhere

    def iterator(self, number: int) -> Iterator[Any]:
        """Return a generator over the items of an iterator in the other process."""
        return self.yielded(number, self.asked[-1], self.shared[-1])

    def yielded(self, number: int, function: int, shared: Shared) -> Generator[Any, Any, Any]:
        sent: Any = None
        call = shared.call
        do = "next"
        while True:
            answer = self.exchange(function, {"do": do, "of": number, "call": call}, [sent], shared)
            if type(answer) is _Stop:
                return answer.value
            try:
                sent, do = (yield answer), "next"
            except GeneratorExit:
                # Not during another call, while the other process waits for the reply to that call.
                if self.in_test and not self.asked:
                    self.exchange(function, {"do": "close", "of": number, "call": call}, [None], shared)
                raise
            except BaseException as error:
                sent, do = error, "throw"

    def repeat_side_effects(self, reply: dict[str, Any]) -> None:
        """Repeat the output, the warnings and the log records of the other process."""
        try:
            self.repeat_known_effects(reply, self.learned[self.asked[-1]])
        except (CannotTravelError, UnseenNameError):
            raise
        except BaseException as error:
            # Not an exception of the answer: a filter may have turned a warning into an exception.
            self.checks.report_once(f"an effect raises {type_name(type(error))}")
            raise

    def repeat_known_effects(self, reply: dict[str, Any], learned: Learned) -> None:
        for stream, name in ((sys.stdout, "out"), (sys.stderr, "err")):
            if reply.get(name) and learned.does(f"writes {name}"):
                _write(stream, reply[name])
        for category, text, level in reply.get("warnings", ()):
            found = self.side.warning_named(category)
            if found is not None and learned.does(f"warns {category}"):
                warnings.warn_explicit(text, found, *_place_of_warning(level, self.stub))
        for row in reply.get("logs", ()):
            logger = logging.getLogger(row[0])
            record = learned.repeats(self.side, logger, row)
            if record is not None:
                logger.handle(record)

    # Detecting that a library runs an answer as code

    def remember(self, value: object) -> None:
        """While learning, keep the strings of the true function's answer, to detect if one of them is run."""
        if not self.learning or len(self.texts) >= _MOST_TEXTS:
            return
        parts = value if isinstance(value, (list, tuple, set, frozenset)) else (value,)
        for part in parts:
            text = part.decode("latin-1") if isinstance(part, bytes) else part
            if isinstance(text, str) and len(text) >= _SHORTEST_TEXT:
                self.texts.add(text)

    def on_audit_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        """As an audit hook, report code that contains an answer's string or was not run in the controls."""
        if self.reporting:
            return
        if self.in_test:
            self.check_running_code(event, arguments)
        if not self.texts or self.asked or self.runs_text:
            return
        if may_run_text(event) and not is_of_tools(event, arguments, self.began):
            for text in texts_of(event, arguments):
                if text in self.texts if event == "import" else any(known in text for known in self.texts):
                    self.runs_text = event
                    self.put("note", kind="problem", reason="runs_text", words=f"an answer reaches {event}")
                    return

    def check_running_code(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Record code that is run; report it if no equal code was run while the true function answered.

        An answer may be a string, a tree or a pickle that the library runs later in this process.
        """
        try:
            running = what_runs(event, arguments)
        except (RecursionError, TypeError, ValueError):
            running = b"what can't be compared"
        if not running or is_of_tools(event, arguments, self.began):
            return
        # Only a digest, because these keys are stored with the controls of the task.
        key = f"{event} {hashlib.sha256(running).hexdigest()[:20]}"
        if key in self.ran or not self.knows_runs:
            return
        if len(self.ran) < _MOST_RUNS:
            self.ran.add(key)
        if not self.learning:
            self.put(
                "note", kind="problem", reason="runs_text", words=f"{event} of what the controls did not see"
            )


class _Stop:
    """The end of an iterator, with its return value."""

    def __init__(self, value: object) -> None:
        self.value = value


_REPLY_FIELDS: dict[str, type] = {
    **dict.fromkeys(("re", "out", "err", "do"), str),
    "roots": list,
    "heap": dict,
    "of": int,
}
_QUESTION_FIELDS = frozenset(("do", "of", "roots", "heap"))
_REPLY_ROWS: dict[str, tuple[type, ...]] = {"warnings": (str, str, int), "logs": (str, int, str, dict)}


def _reply(line: bytes) -> dict[str, Any]:
    """Return an answer of the other process as a dictionary.

    Raises `CannotTravelError` if the line is not a valid message, because the other process can write
    anything.
    """
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if type(found) is not dict or "re" not in found:
        raise CannotTravelError("the answer is not a message")
    for name, kind in _REPLY_FIELDS.items():
        if name in found and type(found[name]) is not kind:
            raise CannotTravelError(f"{name} of the answer is not of type {kind.__name__}")
    # Otherwise, the `KeyError` for a missing part would reach the test as if the function had raised it.
    if found["re"] == "callback" and not _QUESTION_FIELDS.issubset(found):
        raise CannotTravelError("a question is incomplete")
    for name, kinds in _REPLY_ROWS.items():
        rows = found.get(name, [])
        are_rows = type(rows) is list and all(type(row) is list for row in rows)
        if not are_rows or any(tuple(map(type, row)) != kinds for row in rows):
            raise CannotTravelError(f"{name} of the answer have an invalid form")
    return found


def decoded(shared: Shared, message: dict[str, Any], count: int) -> list[Any]:
    """Return the `count` values of a message from the other process.

    Raises `CannotTravelError` for an invalid message or another number of values, so that no error of this
    reader is mistaken for an answer.
    """
    try:
        values = Decoder(shared, message).values()
    except Exception as error:
        raise CannotTravelError(f"the answer can't be read: {type(error).__name__}") from None
    if len(values) != count:
        raise CannotTravelError("the answer has the wrong number of values")
    return values


def _write(stream: Any, text: str) -> None:
    """Write the output of the other process; unpaired surrogates are bytes that are not UTF-8."""
    try:
        stream.write(text)
    except UnicodeEncodeError:
        stream.buffer.write(text.encode("utf-8", "surrogateescape"))


def _as_exception(value: object) -> BaseException:
    return value if isinstance(value, BaseException) else CannotTravelError("an exception was expected")


_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


def _exception_text(error: BaseException) -> str:
    """Return the class and arguments of a test's exception as a string that is the same in each run."""
    try:
        arguments = _ADDRESS.sub("0x", repr(error.args))
    except Exception:  # from the arguments' own `__repr__`
        arguments = "?"
    return f"{type_name(type(error))}{arguments}"[:_LONGEST_TEXT]


def _is_true(answer: object) -> bool:
    try:
        return bool(answer)
    except Exception:  # the library decides about the truth of its objects
        return True


def _was_entered(function: object, error: BaseException) -> bool:
    """Whether a function of the tests had begun when it raised, and did not merely refuse its arguments."""
    if not isinstance(function, (types.FunctionType, types.MethodType)):
        return True
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace is not None


def _call(function: Any, arguments: tuple[Any, ...], keywords: tuple[tuple[str, Any], ...]) -> Any:
    return function(*arguments, **dict(keywords))


def _place_of_warning(level: int, stub: str) -> tuple[str, int]:
    """Return the file and line that a warning names, `level` callers above that of a stub, or the stub's."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    # A method of an object in an answer is called without a stub, which would be one more frame.
    is_stub = frame is not None and stub in frame.f_code.co_consts
    above = level + 1 if is_stub else level
    while above > 0 and frame is not None and frame.f_back is not None:
        frame, above = frame.f_back, above - 1
    return ("<unknown>", 1) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


class StubbedRun(Results):
    """An ordinary run whose tests may ask the other process."""

    def __init__(self, order: dict[str, Any], root: str, put: Callable[..., None], calls: StubCalls) -> None:
        super().__init__(order, root, put)
        self.calls = calls

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(  # type: ignore[override]
        self, item: pytest.Item
    ) -> Generator[None, Any, Any]:
        """Let stubs ask from a test's setup to the end of its teardown; then forget kept objects."""
        super().pytest_runtest_protocol(item)
        self.calls.checks.begin()
        self.calls.around.begin()
        self.calls.in_test = True
        try:
            return (yield)
        finally:
            self.calls.in_test = False
            if self.calls.side.kept:
                self.calls.side.kept.clear()
                self.calls.side.kept_numbers.clear()
                # Objects that stay are kept for only one test, because no later test may advance its
                # generators.
                self.put("note", kind="forget")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, Any, Any]:
        """Let pytest compile what it needs to describe a failure."""
        self.calls.reporting = True
        try:
            return (yield from super().pytest_runtest_makereport(item, call))
        finally:
            self.calls.reporting = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Report what the answers of the true function contained, changed and ran, when learning."""
        if self.calls.learning:
            learned = [
                {"answers": sorted(part.answers), "writes": sorted(part.writes)}
                for part in self.calls.learned
            ]
            if len(self.calls.ran) < _MOST_RUNS:
                learned[0]["runs"] = sorted(self.calls.ran)
            self.put("note", kind="learned", functions=learned)
        super().pytest_sessionfinish(session, exitstatus)


class RewritingRun(Registering):
    """A plugin that registers the run's plugin, and makes pytest rewrite the assertions in all test files."""

    def __init__(self, plugin: StubbedRun, hidden: Iterable[str]) -> None:
        super().__init__(plugin)
        self.hidden = tuple(hidden)

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self) -> None:
        """Register the hidden files for assertion rewriting; without it, their failures aren't reported."""
        rewrite_all()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # modules that are already imported are not test files
            pytest.register_assert_rewrite(*_module_names(self.hidden))


def _module_names(paths: Iterable[str]) -> Iterator[str]:
    """Yield the names by which the files could be imported from any folder on their paths."""
    for path in paths:
        if path.endswith(".py"):
            parts = re.sub(r"(/__init__)?\.py$", "", path).split("/")
            yield from (".".join(parts[start:]) for start in range(len(parts)))


def begin() -> Registering:
    """Read the order, keep the descriptor of the answers, and create the module that the stubs import.

    Returns a plugin that registers the plugin for the run.
    """
    order = taken_order()
    answers = os.fdopen(moved_up(0), "rb")
    close_input()
    put = opened_channel(int(os.environ.pop("GISTPOINT_RESULTS")), order.pop("key"))
    put("begin")
    root = os.environ.pop("GISTPOINT_ROOT")
    calls = StubCalls(order, root, put, answers)
    stub = types.ModuleType(order["stub"])
    vars(stub).update(call=calls.call, generate=calls.generate)
    sys.modules[order["stub"]] = stub
    calls.around.watch()
    return RewritingRun(StubbedRun(order, root, put, calls), order["hidden"])
