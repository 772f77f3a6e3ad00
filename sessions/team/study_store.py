"""The store of a team's study: a folder on each machine, kept equal through the team's store.

The folder contains the file of every writer byte for byte, so that reading a study needs only the folder. A
line is first written to its file and then sent from there; unsent lines are sent with the next call. Only
plans and starts need the team's store: they are valid if it contains them, and otherwise withdrawn.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, Thread, get_ident
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from gistpoint.core.errors import UserError
from gistpoint.core.logs import sync_file
from gistpoint.core.study.ledger import Ledger
from gistpoint.core.study.operations import Fact, StudyOperation, StudyOperationKind
from gistpoint.core.study.ports import Erasure, Publication, PublishedAttempt
from gistpoint.sessions.studies.store import FolderStore
from gistpoint.sessions.team.address import StoreAddress, TeamStoreError, UnreachableError
from gistpoint.sessions.team.connecting import engine_of, reaching, require_schema, revision_of
from gistpoint.sessions.team.study_exchange import (
    PENDING_CLAIMS,
    StudyExchange,
    locked,
    note_claim,
    pending_claims,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

T = TypeVar("T")
PATIENCE_S = 2.0
"""The seconds for which a call waits until new records are sent, unless the store is known to be away."""
_TIMES = 5
"""The number of tries for a plan or start that the database can't serialise with other transactions."""
_LOCK = 0x67697374
"""The first number of gistpoint's advisory locks; the second is computed from the study's id."""
_TAKE = "SELECT pg_try_advisory_lock(:gistpoint, hashtext(:study))"
_TURN_S, _TURN_PAUSE_S = 60.0, 0.05
"""The longest time to wait for a turn to plan, and the pause between two requests for it, in seconds."""
_AWAY = "The next task can begin when it answers again. None of your work is lost."
_REPEATABLE = ("40001", "40P01")
"""The SQLSTATEs of a serialization failure and of a deadlock."""


class _RepeatedError(Exception):
    """The database refused a transaction, which may succeed if it is repeated."""


@dataclass
class _Transaction:
    """A running exclusive transaction, with the operations recorded in it."""

    exchange: StudyExchange
    thread: int
    recorded: list[StudyOperation] = field(default_factory=list)
    claims: list[Path] = field(default_factory=list)
    """The notes that the operations are valid only once the store contains them."""

    def settle(self) -> None:
        """Delete the notes; to be called once the store has accepted the operations."""
        for note in self.claims:
            note.unlink(missing_ok=True)


class TeamStudyStore:
    """The store of a team's study; see `StudyStore`."""

    def __init__(
        self, files: FolderStore, study: str, address: StoreAddress, *, patience_s: float = PATIENCE_S
    ) -> None:
        """`files` is this machine's copy of the study; nothing is connected yet."""
        self.files, self.study, self.address = files, study, address
        self._patience_s = patience_s
        self._unreached = self._conflict = ""
        self._made: Engine | None = None
        self._held: _Transaction | None = None
        self._lock = Lock()
        self._sender: Thread | None = None
        self._wanted: set[str] = set()
        self._fetched_journals = self._checked = False

    # Connections

    @property
    def away(self) -> str:
        """The reason why the store could not be used last time, or how its data differ; otherwise empty."""
        return self._unreached or self._conflict

    @property
    def _engine(self) -> Engine:
        with self._lock:
            if self._made is None:
                self._made = engine_of(self.address, prompt=True)
            return self._made

    @contextmanager
    def _exchange(self) -> Iterator[StudyExchange]:
        """Connect to the store for one transaction, which is committed at the end."""
        try:
            with reaching(self.address), self._engine.begin() as connection:
                yield self._checked_exchange(connection)
        except UnreachableError as error:
            self._unreached = error.message
            raise
        self._unreached = ""

    def _checked_exchange(self, connection: Connection) -> StudyExchange:
        """Return the exchange of a transaction. Raises `TeamStoreError` for a schema of another revision."""
        if not self._checked:
            require_schema(revision_of(connection))
            self._checked = True
        return StudyExchange(self.files, connection, self.study)

    def _sweep_here(self) -> None:
        """Delete local data of people who were erased on other machines."""
        if Ledger(self.files.operations()).erased:
            self.files.sweep()

    def close(self) -> None:
        """Close the connections, after pending data are sent."""
        with self._lock:
            sender, made, self._made = self._sender, self._made, None
        if sender is not None:
            sender.join()
        if made is not None:
            made.dispose()

    # Reading

    def reload(self) -> None:
        """Fetch other writers' data if the store answers, and read the folder again.

        If a line differs from the store's, or the store refuses, nothing can be planned or begun until that
        is resolved.
        """
        if self._is_held():
            self.files.reload()
            return
        self._fetched_journals = False
        try:
            with self._exchange() as exchange:
                exchange.fetch_log()
            if any(pending_claims(self.files.root)):
                with self.files.alone(writing=False), self._exchange() as exchange:
                    exchange.take_back()
        except UnreachableError:
            self.files.reload()
        except UserError as error:  # `away` reports it
            self._conflict = error.message
            self.files.reload()
        else:
            self._conflict = ""
            self.files.reload()
            self._sweep_here()
            self._send_soon()

    def operations(self) -> tuple[StudyOperation, ...]:
        """Return all operations, by time."""
        return self.files.operations()

    def basis(self) -> Mapping[str, int]:
        """Return the number of lines that were read from each writer, by the writer's hash (8 digits)."""
        return self.files.basis()

    def operations_at(self, basis: Mapping[str, int]) -> tuple[StudyOperation, ...]:
        """Return the operations in the lines that `basis` counts for each writer, by time."""
        return self.files.operations_at(basis)

    def attempts(self) -> Iterator[PublishedAttempt]:
        """Yield the published journals, oldest first, after fetching missing ones if possible."""
        if not self._fetched_journals and not self._is_held():
            try:
                self.send()
            except UnreachableError:
                pass  # `away` reports it
            except UserError as error:
                self._conflict = error.message
        yield from self.files.attempts()

    def attempt(self, identity: str) -> PublishedAttempt | None:
        """Return the published journal of an attempt; None if there is none."""
        return next((attempt for attempt in self.attempts() if attempt.id == identity), None)

    # Writing

    def append(self, operations: Iterable[StudyOperation]) -> int:
        """Write the operations that are not known yet, synced to disk; send them, and return their number."""
        added = self.files.append(operations)
        self._send_soon()
        return added

    def record(
        self, name: str, subject: str, kind: StudyOperationKind, data: Fact | None = None
    ) -> StudyOperation:
        """Append an operation with the current time to a participant's or the organiser's file, and send it.

        Returns the operation. In `exclusively`, it is valid only if the transaction succeeds.
        """
        operation = self.files.operation(name, subject, kind, data)
        held = self._held
        if held is None or not self._is_held():
            self.append([operation])
            return operation
        held.claims.append(note_claim(self.files.root, operation))
        self.files.append([operation])
        held.recorded.append(operation)
        held.exchange.send_log(first=True)
        return operation

    def publish(self, folder: Path) -> Publication:
        """Publish the current journal in an attempt's folder, send it, and return the outcome."""
        done = self.files.publish(folder)
        self._send_soon(journals=done is not Publication.OLDER)
        return done

    def erase(self, code: str) -> Erasure:
        """Delete all data of a person, here and in the store, and return what was deleted here.

        If the store is away, the next call deletes the data there.
        """
        self.reload()
        erasure = self.files.erase(code)
        self._send_soon(journals=True)
        return erasure

    def sweep(self) -> Erasure:
        """Delete reappeared data of erased people, here and in the store; return what was deleted here."""
        erasure = self.files.sweep()
        self._send_soon(journals=erasure.any)
        return erasure

    def send(self) -> None:
        """Send all data missing from the store, and fetch the missing journals and reviews.

        Raises `UserError` if the store can't be reached or refuses, or if data differ.
        """
        with self.files.alone(writing=False), self._exchange() as exchange:
            exchange.send_log()
        with self._exchange() as exchange:
            exchange.fetch_journals()
            exchange.send_journals()
            exchange.exchange_reviews()
        self._fetched_journals = True

    def send_soon(self) -> None:
        """Send all unsent data in a thread, and wait briefly for it unless the store is known to be away."""
        self._send_soon(journals=True)

    def _send_soon(self, *, journals: bool = False) -> None:
        """Send the log, and with `journals` the journals, in a thread; the next call repeats what failed.

        Unless the store is away, wait up to `_patience_s` seconds for it. The program's exit also waits.
        """
        if self._is_held():
            return
        with self._lock:
            self._wanted |= {"lines", "journals"} if journals else {"lines"}
            sender = self._sender
            if sender is None:
                sender = self._sender = Thread(target=self._send_wanted, name=f"sends {self.study}")
                sender.start()
        if not self.away:
            sender.join(self._patience_s)

    def _send_wanted(self) -> None:
        wanted = self._take_wanted()
        while wanted:
            failed = wanted
            try:
                with self.files.alone(writing=False), self._exchange() as exchange:
                    exchange.send_log()
                    if "journals" in wanted:
                        exchange.send_journals()
                failed = set()
            except UserError:
                pass  # the next call that can report the error will encounter it again
            finally:
                wanted = self._take_wanted(failed)

    def _take_wanted(self, failed: Collection[str] = ()) -> set[str]:
        """Return the data to send now; if none are left or something failed, the sending thread ends."""
        with self._lock:
            self._wanted |= set(failed)
            wanted: set[str] = set() if failed else self._wanted
            if wanted:
                self._wanted = set()
            else:
                self._sender = None
            return wanted

    # One transaction for a plan or a start

    def exclusively(self, act: Callable[[], T]) -> T:
        """Call `act` in a serialisable transaction, after fetching others' data; return its result.

        Only one such transaction of the study runs at a time. If others change the study meanwhile, the
        records of `act` are removed and it is called again, up to `_TIMES` times in all. Raises `UserError`
        if the store can't be reached or refuses the changes.
        """
        try:
            for _ in range(_TIMES):
                with suppress(_RepeatedError), self.files.alone():
                    return self._exclusively(act)
        except UnreachableError:
            raise
        except UserError:
            self._send_soon()  # waiting data were sent in the transaction that is being undone
            raise
        raise TeamStoreError(
            f"The store {self.address} refused the same change {_TIMES} times, because others were"
            " changing the study.",
            hint="Try again.",
        )

    def _exclusively(self, act: Callable[[], T]) -> T:
        lock: dict[str, object] = {"gistpoint": _LOCK, "study": self.study}
        try:
            with reaching(self.address), self._engine.connect() as connection:
                # The lock is taken before the transaction, whose snapshot would otherwise be older than the
                # lock.
                self._take_turn(connection, lock)
                # A machine that has lost its connection must not keep the lock.
                connection.execute(text("SET idle_in_transaction_session_timeout = '30s'"))
                connection.commit()
                try:
                    # No later comparison of files could repair two plans made simultaneously (decision 104).
                    connection.execution_options(isolation_level="SERIALIZABLE")
                    return self._transaction(connection, self._checked_exchange(connection), act)
                finally:
                    if not connection.invalidated:
                        connection.rollback()
                        connection.execute(
                            text("SELECT pg_advisory_unlock(:gistpoint, hashtext(:study))"), lock
                        )
                        connection.commit()
        except UnreachableError as error:
            self._unreached = error.message
            raise UnreachableError(error.message, hint=_AWAY) from error

    def _take_turn(self, connection: Connection, lock: dict[str, object]) -> None:
        """Take the study's lock as soon as no other machine holds it.

        The server answers each request at once; waiting for the lock there would look like a stopped server
        (decision 189). Raises `TeamStoreError` if others hold the lock for a minute.
        """
        until = time.monotonic() + _TURN_S
        while not connection.scalar(text(_TAKE), lock):
            if time.monotonic() > until:
                raise TeamStoreError(
                    f"Other machines have kept the study locked on {self.address} for {_TURN_S:.0f} s.",
                    hint="Try again.",
                )
            connection.commit()
            time.sleep(_TURN_PAUSE_S)

    def _transaction(self, connection: Connection, exchange: StudyExchange, act: Callable[[], T]) -> T:
        held = _Transaction(exchange, get_ident())
        try:
            exchange.fetch_log()
            exchange.take_back()
            self.files.reload()
            self._sweep_here()
            exchange.send_log()
            self._held = held
            result = act()
        except BaseException as error:
            self._undo(held)
            if isinstance(error, DBAPIError) and _refused(error):
                raise _RepeatedError from error
            raise
        finally:
            self._held = None
        try:
            connection.commit()
        except DBAPIError as error:
            if _refused(error):
                self._undo(held)
                raise _RepeatedError from error
            raise  # the transaction may have been committed, which the next call determines
        held.settle()
        self._unreached = self._conflict = ""
        return result

    def _is_held(self) -> bool:
        return self._held is not None and self._held.thread == get_ident()

    def _undo(self, held: _Transaction) -> None:
        """Remove the recorded lines and their notes; nobody has read them, and the store has none of them."""
        for operation in reversed(held.recorded):
            with locked(self.files.log.path_of(operation.reviewer)) as file:
                data = os.pread(file, os.fstat(file).st_size, 0)
                start = data.rfind(b"\n", 0, len(data) - 1) + 1
                if self._is_line_of(operation, data[start:]):
                    os.ftruncate(file, start)
                    sync_file(file)
                    (self.files.root / PENDING_CLAIMS / operation.op).unlink(missing_ok=True)
        self.files.reload()

    def _is_line_of(self, operation: StudyOperation, line: bytes) -> bool:
        """Return whether a line records the operation; the line is also linked to the one before it."""
        try:
            recorded = self.files.log.codec.decode(line)
        except ValueError:
            return False
        return recorded is not None and recorded.op == operation.op

    # Comparing

    def differences(self) -> Iterator[str]:
        """Send unsent data, and yield a sentence for each difference between the folder and the store.

        A difference found while sending is yielded first. If the store can't be reached, or refuses the
        comparison, the remaining differences are left out; `away` then gives the reason.
        """
        try:
            self.send()
        except UnreachableError:
            return
        except TeamStoreError as error:  # a refusal, such as for missing rights, is not a difference
            self._conflict = error.message
        except UserError as error:
            yield error.message
        try:
            with self._exchange() as exchange:
                yield from exchange.differences()
        except UnreachableError:
            return
        except TeamStoreError as error:
            self._conflict = error.message


def _refused(error: BaseException) -> bool:
    """Return whether the database reports that a transaction was not executed and may be repeated."""
    return getattr(getattr(error, "orig", None), "sqlstate", "") in _REPEATABLE
