"""The screen with the list of runs, which can be sorted, filtered and grouped while it is being read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.getters import query_one
from textual.widgets import Input

from gistpoint.core.errors import UserError
from gistpoint.core.query_grammar import KeptQueries, QueryError
from gistpoint.core.text import plural
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.jobs import Jobs
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.screens.review.reading_runs import RowBatch, find_content, read_again, read_rows
from gistpoint.tui.screens.review.run_rows import COLUMNS, GROUPS, RunRow, fault_of, hides_outcome, solved
from gistpoint.tui.screens.review.screen import ReviewScreen
from gistpoint.tui.screens.review.settings import ReviewSettings
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.header_bar import HeaderBar, HeaderField
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.record_list import RecordList
from gistpoint.tui.widgets.table import Table

if TYPE_CHECKING:
    from gistpoint.core.queries import ContentTerm, QueryField
    from gistpoint.tui.others import Others, OthersWatch
    from gistpoint.tui.screens.review.profiles import KnownProfiles
    from gistpoint.tui.screens.review.watching import ListWatch, WatchedRows

_TYPING_S = 0.3
"""Seconds after the last key before the content of runs is searched."""
_MOST_NAMED = 200
"""The maximum number of unread files whose names are shown."""


def _verdicts(folder: Path) -> Iterator[tuple[str, str, str]]:
    from gistpoint.core.machine_time import SystemTime
    from gistpoint.sessions.annotations.reviewer import ReviewStore

    for review in ReviewStore(folder, SystemTime()).book.states():
        if review.verdict is not None:
            yield review.run, review.reviewer, review.verdict.in_words


class RunTable(Table[RunRow]):
    """The table of runs, one per row. Picked runs are marked."""

    MARGIN = 2
    SPARING = True

    def __init__(self, *, id: str, config: Path | None = None) -> None:
        """`config` is the folder with the kept queries; None for none."""
        super().__init__(COLUMNS, key=lambda row: row.name, id=id)
        self._config = config
        self.answers: dict[tuple[str, bool, ContentTerm], bool] = {}
        """Whether content is in a run, by the run's name, whether facts are hidden, and the content."""

    def further_fields(self) -> Sequence[QueryField[Any]]:
        """Return the fields that queries can ask for besides the columns."""
        from gistpoint.sessions.runs.run_queries import FURTHER

        return FURTHER

    def kept_queries(self) -> KeptQueries:
        """Return the queries that are kept under names."""
        from gistpoint.core.kept_queries import kept_queries

        return KeptQueries() if self._config is None else kept_queries(self._config)

    def forget(self, names: Collection[str]) -> None:
        """Forget what is known about the content of runs, which have changed."""
        self.answers = {asked: found for asked, found in self.answers.items() if asked[0] not in names}

    def find_content(self, row: RunRow, term: ContentTerm) -> bool | None:
        """Return whether content is in a run; None if that is not known yet."""
        return self.answers.get((row.name, row.hides, term))


class RunsScreen(BaseScreen[None]):
    """The screen with a list of runs to choose from."""

    CSS_PATH = "review.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.RUNS)]
    HELP_PAGE = "runs"
    AUTO_FOCUS = "RunTable"
    """The table: a key pressed while the screen opens must not end up in the hidden filter."""
    SCOPES = (KeyScope.RUNS,)

    table = query_one(RunTable)
    words = query_one("#runs-filter", Input)
    header_bar = query_one(HeaderBar)

    def __init__(
        self, paths: Sequence[str], settings: ReviewSettings, *, watch: ListWatch | None = None
    ) -> None:
        """`watch` watches the files; without it, they are read once, and again on request."""
        super().__init__()
        self._list_watch, self._watch_words = watch, ""
        self._paths, self._settings = tuple(paths), settings
        self._rows: dict[str, RunRow] = {}
        self._unread: dict[str, str] = {}
        """The reasons why files can't be read as runs, by name."""
        self._profiles: KnownProfiles | None = None
        """A cache of profiles, None until it is needed. It is dropped when the list is read again."""
        self._listed = False
        self._query_error: QueryError | None = None
        """The error in the filter's query; None if the query is valid."""
        self._content_jobs, self._searching = Jobs(self, "content of runs"), False
        """The jobs that look for content in the runs, and whether one is running."""
        self._outdated: set[str] = set()
        """The runs that have changed since that job began, by name; they are searched again."""
        self._jobs, self._jobs_for_others = Jobs(self, "run list"), Jobs(self, "others' reviews")
        self._watch: OthersWatch | None = None
        self._others: Others | None = None
        """The activity of the others in the team; None unless a store is chosen."""

    def compose(self) -> ComposeResult:
        """Lay out header, table and filter."""
        yield HeaderBar("Runs")
        yield framed(RunTable(id="runs", config=self._settings.locations.config), "Runs")
        yield Input(
            placeholder='words, tokens>100k, not edited, error:"text", (a or b), @kept (Esc: all)',
            id="runs-filter",
            compact=True,
        )
        yield KeyBar()

    def on_mount(self) -> None:
        """Read the list, and start watching the others in the team."""
        self.words.display = False
        self.table.focus()
        if self._list_watch is not None:
            self._list_watch.begin(self._jobs, self.take_watched)
        else:
            self.action_reload()
        if self._settings.live is not None:
            from gistpoint.tui.others import OthersWatch

            reading = partial(_verdicts, self._settings.reviews)
            self._watch = OthersWatch(self._settings.live, reading, self._settings.reviewer)
            self._watch.begin(self._jobs_for_others, self._take_others)

    def on_screen_resume(self) -> None:
        """Report to the team that no run is being read."""
        if self._settings.live is not None:
            self._settings.live.reading("")

    def on_unmount(self) -> None:
        """Stop reading."""
        self._jobs.stop()
        self._content_jobs.stop()
        self._jobs_for_others.stop()

    def _take_others(self, others: Others) -> None:
        """Show which runs others are reading, and how far the reviewers agree."""
        from gistpoint.sessions.annotations.keys import beginning_of

        self._others = others
        changed = {}
        for name, row in self._rows.items():
            readers = others.readers.get(beginning_of(row.review.run), ()) if row.review is not None else ()
            if readers != row.readers:
                changed[name] = replace(row, readers=readers)
        if changed:
            self._rows |= changed
            self.table.show(self._rows.values())
        self.draw_title()

    def take(self, batch: RowBatch) -> None:
        """Show new or updated rows."""
        self._rows |= {row.name: self._blinded(row) for row in batch.rows if row.listed.header is not None}
        self._unread |= {row.name: row.listed.problem for row in batch.rows if row.listed.header is None}
        self._listed = batch.listed
        self.table.show(self._rows.values())
        self._search_content()

    def take_watched(self, watched: WatchedRows) -> None:
        """Show the rows of a list that is watched, search in those that changed, and report new failures."""
        self._rows = {row.name: self._blinded(row) for row in watched.rows if row.listed.header is not None}
        self._unread = {row.name: row.listed.problem for row in watched.rows if row.listed.header is None}
        self._listed, self._watch_words = watched.complete, watched.words
        self.table.forget(watched.read)
        self.table.show(self._rows.values())
        self._outdated |= set(watched.read)
        self._search_content()
        if watched.failure_words:
            self.app.notify(watched.failure_words, severity="error")

    def _blinded(self, row: RunRow) -> RunRow:
        """Return a row as the current settings show it, whatever they were when it was read."""
        hides = hides_outcome(row.review, blind=self._settings.blind)
        return row if hides is row.hides else replace(row, hides=hides)

    @on(Table.Arranged)
    def draw_title(self) -> None:
        """Show the number of runs, the number solved, and their order in the frame, or the query's error."""
        table = self.table
        if self._query_error is not None:
            framed(table, self._query_error.message, self._query_error.hint)
            return
        ways = [
            f"by {table.group.name} (medians, Σ total)" if table.group is not None else "",
            f"sorted by {table.column.name}" if table.column is not None else "",
            f"{len(table.picked)} picked" if table.picked else "",
        ]
        framed(table, "  ".join([self._count_words(), *filter(None, ways)]), self._note())
        words = (
            "blind: models and outcomes are hidden until the verdict"
            if self._settings.blind
            else "  ".join(filter(None, [self._place(), self._watch_words]))
        )
        self.header_bar.show(words=words, fields=[HeaderField("reviewer", self._settings.reviewer)])

    def _note(self) -> str:
        """Return a note on the others in the team, the solved runs, and the files not read or damaged."""
        unread, damaged = len(self._unread), sum(bool(fault_of(row)) for row in self._rows.values())
        notes = [
            solved(self.table.shown),
            f"{plural(unread, 'file')} not read" if unread else "",
            f"{damaged:,} damaged" if damaged else "",
        ]
        note = ", ".join(filter(None, notes)) + (": i" if unread or damaged else "")
        return "  ".join(filter(None, [self._others.words if self._others is not None else "", note]))

    def _count_words(self) -> str:
        """Return the number of displayed runs, and whether more may come or the filter hides all."""
        shown, known = len(self.table.shown), len(self._rows)
        count = f"Runs {shown:,} of {known:,}" if shown != known else f"Runs {shown:,}"
        if self._searching:
            return f"{count}, searching in them …"
        if not self._listed:
            return f"{count} …"
        filtered_out = known > 0 and shown == 0
        return f"{count}: none matches the filter (Esc: all)" if filtered_out and self.words.value else count

    def _place(self) -> str:
        """Return the last part of the first path and the number of other paths; empty if there are none."""
        names = [PurePath(path).name or path for path in self._paths]
        return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "") if names else ""

    # Choosing runs

    @on(RecordList.Chosen, "#runs")
    def chosen(self) -> None:
        """Open the run under the cursor, or fold or unfold the group.

        If several runs are picked, but not that one, the first of them is opened.
        """
        row, group = self.table.chosen, self.table.chosen_group
        if row is None:
            self.table.fold(folded=group is not None and not group.folded)
            return
        picked = tuple(map(str, self.table.picked))
        name, names = (row.name, picked) if len(picked) > 1 else (row.name, self._names())
        if name not in names:
            name = names[0]
        screen = ReviewScreen(name, self._settings, runs=names)

        def left(_: object) -> None:
            self.table.rearrange(at=screen.run.name)
            self._reviewed()

        self.app.push_screen(screen, left)

    def _names(self) -> tuple[str, ...]:
        return tuple(row.name for row in self.table.shown)

    def _reviewed(self, _answer: object = None) -> None:
        """Read again the runs that have been annotated, or all runs if some are still being read."""
        if self._watch is not None:
            self._watch.changed()
        if self._list_watch is not None:
            self._list_watch.read_again(tuple(self._rows))
            return
        if self._jobs.busy:
            self.action_reload()
            return
        rows, settings = tuple(self._rows.values()), self._settings
        self._jobs.do(lambda job: read_again(job, rows, settings, self.take), key="runs")

    def action_pick(self) -> None:
        """Pick or unpick the run, or the runs of the group, at the cursor."""
        self.table.pick()
        self.draw_title()

    def action_compare(self) -> None:
        """Compare two picked runs, the only two in the list, or all listed or picked runs of one task."""
        rows = self._compared()
        if len(rows) < 2:
            self.app.notify("No other run of this task is in the list. Pick two runs with Space.")
        elif len(rows) == 2:
            left, right = rows
            screens = self._settings.screens
            self.app.push_screen(screens.comparison(left.name, right.name, self._settings))
        else:
            from gistpoint.tui.screens.review.action_tree import ActionTreeScreen

            self.app.push_screen(ActionTreeScreen(rows, self._settings))

    def _compared(self) -> list[RunRow]:
        """Return the runs to compare: two picked ones, or the picked or listed ones of a single task."""
        picked = [self._rows[name] for name in map(str, self.table.picked) if name in self._rows]
        rows = picked or self.table.shown
        if len(rows) <= 2:
            return rows
        group = self.table.chosen_group
        first_of_group = group.rows[0] if group is not None else rows[0]
        here = self.table.chosen or first_of_group
        task = (here if here in rows else rows[0]).header.task
        of_task = [row for row in rows if row.header.task == task]
        # Picked runs may record no task; each of them then seems to be of another one.
        return rows if picked and len(of_task) < 2 else of_task

    def action_profile(self) -> None:
        """Show the profiles of the picked runs, or of all displayed ones."""
        picked = {str(name) for name in self.table.picked}
        chosen = [row for row in self.table.shown if row.name in picked] or self.table.shown
        from gistpoint.tui.screens.review.profiles import KnownProfiles, ProfilesScreen

        if self._profiles is None:
            self._profiles = KnownProfiles()
        self.app.push_screen(ProfilesScreen(chosen, self._settings, self._profiles))

    def action_search(self) -> None:
        """Search in all displayed runs."""
        runs = {row.name: row for row in self.table.shown}
        if runs:
            from gistpoint.tui.screens.review.places import PlacesScreen

            self.app.push_screen(PlacesScreen(runs, self._settings), self._reviewed)

    def action_unread(self) -> None:
        """List the runs that can't be read in full, with the reasons."""
        faults = self._unread | {name: fault for name, row in self._rows.items() if (fault := fault_of(row))}
        if not faults:
            self.app.notify("All files were read in full.")
            return
        from gistpoint.tui.screens.dialogs.ask import MessageDialog

        faulty = [
            fault.replace(name, self._short(name)) if name in fault else f"{self._short(name)}: {fault}"
            for name, fault in faults.items()
        ]
        more = (
            [f"and {len(faulty) - _MOST_NAMED:,} more: gistpoint runs names all"]
            if len(faulty) > _MOST_NAMED
            else []
        )
        title = f"{plural(len(faults), 'file')} not read in full"
        self.app.push_screen(MessageDialog(title, "\n".join([*faulty[:_MOST_NAMED], *more])))

    def _short(self, name: str) -> str:
        """Return a run's name without the folder that was given on the command line."""
        folders = (path.rstrip("/") + "/" for path in self._paths)
        return name.removeprefix(next(filter(name.startswith, folders), ""))

    # Sorting, grouping and filtering

    def action_sort(self) -> None:
        """Sort by the next column; after the last column, restore the original order."""
        self.table.sort_next()

    def action_reverse(self) -> None:
        """Reverse the order."""
        self.table.reverse_order()

    def action_group(self) -> None:
        """Group by the next column in `GROUPS`."""
        self.table.group_by(GROUPS[(GROUPS.index(self.table.group) + 1) % len(GROUPS)])
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer folding only while there are groups."""
        return action not in ("fold", "fold_all") or (self.is_mounted and self.table.group is not None)

    def action_fold(self, folded: bool) -> None:
        """Fold or unfold the group at the cursor."""
        self.table.fold(folded=folded)

    def action_fold_all(self) -> None:
        """Fold or unfold all groups."""
        self.table.fold_all()

    def action_filter(self) -> None:
        """Show the filter and focus it."""
        self.words.display = True
        self.words.focus()

    @on(Input.Changed, "#runs-filter")
    def narrow(self, event: Input.Changed) -> None:
        """Filter the rows with the query typed so far."""
        self._query_error = None
        try:
            self.table.narrow(event.value)
        except QueryError as error:
            self._query_error = error
            self.draw_title()
        self._content_jobs.stop()
        self._content_jobs = Jobs(self, "content of runs")
        self._searching = False
        self._search_content()

    def _search_content(self) -> None:
        """Determine whether runs contain the content that the query asks for, unless a job is doing so."""
        query = self.table.query_now
        if not query.content or self._searching or self._query_error is not None:
            return
        rows = [row for row in self._rows.values() if query.decide(row, query.find) is None]
        if not rows:
            return
        self._searching, self._outdated, settings = True, set(), self._settings
        self._content_jobs.do(
            lambda job: find_content(job, rows, query, settings, self._take_answers),
            self._content_searched,
            failed=self._content_not_searched,
            key="content",
            delay=_TYPING_S,
        )

    def _take_answers(self, found: Mapping[tuple[str, bool, ContentTerm], bool]) -> None:
        """Show the runs that contain the content that the query asks for."""
        current = {asked: answer for asked, answer in found.items() if asked[0] not in self._outdated}
        self.table.answers |= current
        self.table.rearrange()

    def _content_searched(self, _: object) -> None:
        self._searching = False
        self.draw_title()
        self._search_content()

    def _content_not_searched(self, error: Exception) -> None:
        if not isinstance(error, UserError):
            raise error
        self._query_error = QueryError(error.message, hint=error.hint)
        self.draw_title()

    @on(Input.Submitted, "#runs-filter")
    def leave_filter(self) -> None:
        """Focus the table."""
        self.table.focus()

    def action_blind(self) -> None:
        """Hide models and outcomes until the verdicts, or stop doing so, at once in all rows."""
        self._settings = replace(self._settings, blind=not self._settings.blind)
        self._rows = {name: self._blinded(row) for name, row in self._rows.items()}
        self.table.show(self._rows.values())
        if self._list_watch is not None:
            self._list_watch.use(self._settings)
            return
        self.action_reload()

    def action_reload(self) -> None:
        """Read the list again."""
        if self._list_watch is not None:
            self._list_watch.read_again(tuple(self._rows))
            return
        paths, settings = self._paths, self._settings
        self._unread, self._profiles = {}, None
        self.table.answers.clear()
        app = self.app

        def is_second() -> bool:
            return any(
                isinstance(screen, ReviewScreen) and screen.run.loader.must_load_first
                for screen in app.screen_stack
            )

        self._jobs.do(lambda job: read_rows(job, paths, settings, self.take, is_second), key="runs")

    @property
    def key_names(self) -> Mapping[str, str | None]:
        """Leave out one of the keys that end the list: Esc if it leads nowhere, otherwise q."""
        leads_back = self.words.display or len(self.app.screen_stack) > 1
        return {"leave": None} if leads_back else {"back": None}

    def action_back(self) -> None:
        """Clear the filter, or close the list, but don't leave the program."""
        if self.words.display:
            self.words.value = ""
            self.words.display = False
            self.table.focus()
        elif len(self.app.screen_stack) > 1:
            self.dismiss(None)
        else:
            self.app.notify("There is nothing to go back to: q closes the list and ends the program.")

    def action_leave(self) -> None:
        """Close the list."""
        self.dismiss(None)
