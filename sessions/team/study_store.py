"""A team's study: a folder on each machine, kept equal through the team's store.

The folder contains every writer's file byte for byte, so that readers of a study only need the folder. A line
is written to its file first and sent from there; unsent lines go with the next call. Only plans and
beginnings need the store: they are valid when it has them, and withdrawn otherwise.
"""

from __future__ import annotations

import os
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
"""How long a call waits for new records to be sent; it does not wait while the store is known to be away."""
_TIMES = 5
"""A plan or a beginning is repeated so often if the database can't order it after the work of others."""
_LOCK = 0x67697374
"""The first number of our advisory locks; the second is made of the study's id."""
_AWAY = "The next task can begin when it answers again. Nothing that was done is lost."
_REPEATABLE = ("40001", "40P01")
"""SQLSTATE: serialization failure, deadlock detected."""


class _RepeatedError(Exception):
    """The database refused the transaction, which may succeed when repeated."""


@dataclass
class _Held:
    """An exclusive transaction under way, with what was recorded in it."""

    exchange: StudyExchange
    thread: int
    recorded: list[StudyOperation] = field(default_factory=list)
    claims: list[Path] = field(default_factory=list)
    """The notes that these operations hold only once the store has them."""

    def settle(self) -> None:
        """Delete the notes: the store has the operations, or the files here do not."""
        for note in self.claims:
            note.unlink(missing_ok=True)


class TeamStudyStore:
    """The store of a team's study; see `StudyStore`."""

    def __init__(
        self, files: FolderStore, study: str, address: StoreAddress, *, patience_s: float = PATIENCE_S
    ) -> None:
        """`files` is this machine's copy of the folder; nothing is connected yet."""
        self.files, self.study, self.address = files, study, address
        self._patience_s = patience_s
        self._unreached = self._conflict = ""
        self._made: Engine | None = None
        self._held: _Held | None = None
        self._lock = Lock()
        self._sender: Thread | None = None
        self._wanted: set[str] = set()
        self._fetched_journals = self._checked = False

    # Connections

    @property
    def away(self) -> str:
        """Why the store could not be reached at the last attempt, or how it differs; empty if neither is so."""
        return self._unreached or self._conflict

    @property
    def _engine(self) -> Engine:
        with self._lock:
            if self._made is None:
                self._made = engine_of(self.address)
            return self._made

    @contextmanager
    def _exchange(self) -> Iterator[StudyExchange]:
        """Connect to the store for one transaction, which is committed at the end."""
        try:
            with reaching(self.address), self._engine.begin() as connection:
                yield self._of(connection)
        except UnreachableError as error:
            self._unreached = error.message
            raise
        self._unreached = ""

    def _of(self, connection: Connection) -> StudyExchange:
        """Return the exchange of a transaction. Raises `TeamStoreError` for a store of another revision."""
        if not self._checked:
            require_schema(revision_of(connection))
            self._checked = True
        return StudyExchange(self.files, connection, self.study)

    def _sweep_here(self) -> None:
        """Delete local data of people who were erased elsewhere."""
        if Ledger(self.files.operations()).erased:
            self.files.sweep()

    def close(self) -> None:
        """Close the connections, after the data being sent."""
        with self._lock:
            sender, made, self._made = self._sender, self._made, None
        if sender is not None:
            sender.join()
        if made is not None:
            made.dispose()

    # Reading

    def reload(self) -> None:
        """Fetch what others have written, and read the folder; without the store, the folder as it is."""
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
        except UserError as error:  # a line differs: nothing is planned or begun until that is resolved
            self._conflict = error.message
            self.files.reload()
        else:
            self._conflict = ""
            self.files.reload()
            self._sweep_here()
            self._send_soon()

    def operations(self) -> tuple[StudyOperation, ...]:
        """Return all operations, in the order of their times."""
        return self.files.operations()

    def basis(self) -> Mapping[str, int]:
        """Return how many lines of each writer were read, by the first 8 digits of sha256 of the writer."""
        return self.files.basis()

    def operations_at(self, basis: Mapping[str, int]) -> tuple[StudyOperation, ...]:
        """Return the operations that a reader with this basis had read."""
        return self.files.operations_at(basis)

    def attempts(self) -> Iterator[PublishedAttempt]:
        """Yield the published journals, the oldest first, after fetching those that are not here."""
        if not self._fetched_journals and not self._is_held():
            try:
                self.send()
            except UnreachableError:
                pass  # `away` reports it
            except UserError as error:
                self._conflict = error.message
        yield from self.files.attempts()

    def attempt(self, identity: str) -> PublishedAttempt | None:
        """Return the published journal of an attempt."""
        return next((attempt for attempt in self.attempts() if attempt.id == identity), None)

    # Writing

    def append(self, operations: Iterable[StudyOperation]) -> int:
        """Write operations that are not known yet, synced to the disk, and send them; return how many."""
        added = self.files.append(operations)
        self._send_soon()
        return added

    def record(
        self, name: str, subject: str, kind: StudyOperationKind, data: Fact | None = None
    ) -> StudyOperation:
        """Append an operation of now to the file of a participant, or of the organiser, and send it."""
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
        """Copy the present journal in an attempt's folder, and send it."""
        done = self.files.publish(folder)
        self._send_soon(journals=done is not Publication.OLDER)
        return done

    def erase(self, code: str) -> Erasure:
        """Delete all data of a person, here and in the store; if it is away, there at the next call."""
        self.reload()
        erasure = self.files.erase(code)
        self._send_soon(journals=True)
        return erasure

    def sweep(self) -> Erasure:
        """Delete reappeared data of erased people, here and in the store."""
        erasure = self.files.sweep()
        self._send_soon(journals=erasure.any)
        return erasure

    def send(self) -> None:
        """Send all data missing in the store, and fetch the journals missing here. Raises `UserError`."""
        with self.files.alone(writing=False), self._exchange() as exchange:
            exchange.send_log()
        with self._exchange() as exchange:
            exchange.fetch_journals()
            exchange.send_journals()
            exchange.exchange_reviews()
        self._fetched_journals = True

    def send_soon(self) -> None:
        """Send all waiting data in a thread, and wait briefly for it, unless the store was away at the last
        attempt.
        """
        self._send_soon(journals=True)

    def _send_soon(self, *, journals: bool = False) -> None:
        """Send in a thread, for which the program's end waits; unsent data go with the next call."""
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
                pass  # the next call that can report it meets it again
            finally:
                wanted = self._take_wanted(failed)

    def _take_wanted(self, failed: Collection[str] = ()) -> set[str]:
        """Return what is to be sent now; if there is nothing to send, or something failed, the sender ends."""
        with self._lock:
            self._wanted |= set(failed)
            wanted: set[str] = set() if failed else self._wanted
            if wanted:
                self._wanted = set()
            else:
                self._sender = None
            return wanted

    # One transaction for a plan or a beginning

    def exclusively(self, act: Callable[[], T]) -> T:
        """Call `act` in a serialisable transaction, after reading all that others wrote; one at a time in the
        study.
        """
        try:
            for _ in range(_TIMES):
                with suppress(_RepeatedError), self.files.alone():
                    return self._exclusively(act)
        except UnreachableError:
            raise
        except UserError:
            self._send_soon()  # waiting data were sent in the transaction that is undone
            raise
        raise TeamStoreError(
            f"The store {self.address} refused the same change {_TIMES} times, as others were changing the"
            " study.",
            hint="Try it again.",
        )

    def _exclusively(self, act: Callable[[], T]) -> T:
        lock = {"ours": _LOCK, "study": self.study}
        try:
            with reaching(self.address), self._engine.connect() as connection:
                # Before the transaction: its snapshot would be older than what is waited for.
                connection.execute(text("SELECT pg_advisory_lock(:ours, hashtext(:study))"), lock)
                connection.execute(
                    text("SET idle_in_transaction_session_timeout = '30s'")
                )  # of a machine that is gone
                connection.commit()
                try:
                    connection.execution_options(isolation_level="SERIALIZABLE")
                    return self._transaction(connection, self._of(connection), act)
                finally:
                    if not connection.invalidated:
                        connection.rollback()
                        connection.execute(text("SELECT pg_advisory_unlock(:ours, hashtext(:study))"), lock)
                        connection.commit()
        except UnreachableError as error:
            self._unreached = error.message
            raise UnreachableError(error.message, hint=_AWAY) from error

    def _transaction(self, connection: Connection, exchange: StudyExchange, act: Callable[[], T]) -> T:
        held = _Held(exchange, get_ident())
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
            raise  # it may have been done: the next call finds out
        held.settle()
        self._unreached = self._conflict = ""
        return result

    def _is_held(self) -> bool:
        return self._held is not None and self._held.thread == get_ident()

    def _undo(self, held: _Held) -> None:
        """Remove lines from their files that nobody has read and the store does not have."""
        for operation in reversed(held.recorded):
            line = self.files.log.codec.encode(operation)
            with locked(self.files.log.path_of(operation.reviewer)) as file:
                size = os.fstat(file).st_size
                if os.pread(file, len(line), max(0, size - len(line))) == line:
                    os.ftruncate(file, size - len(line))
                    sync_file(file)
                    (self.files.root / PENDING_CLAIMS / operation.op).unlink(missing_ok=True)
        self.files.reload()

    # Comparing

    def differences(self) -> Iterator[str]:
        """Yield a sentence for each difference between the folder and the store, after sending unsent data."""
        try:
            self.send()
        except UnreachableError:
            return
        except UserError as error:
            yield error.message
        try:
            with self._exchange() as exchange:
                yield from exchange.differences()
        except UnreachableError:
            return


def _refused(error: BaseException) -> bool:
    """Whether the database reports that a transaction was not done, and may be tried again."""
    return getattr(getattr(error, "orig", None), "sqlstate", "") in _REPEATABLE
