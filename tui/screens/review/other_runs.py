"""The other runs of a list: prepared neighbours of the open run, and runs that it links to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath

from gistpoint.tui.screens.review.loading import RunLoader
from gistpoint.tui.screens.review.view import ReviewView


def _without_shared(names: Sequence[str]) -> list[str]:
    """Return paths without the folders at the start and the parts at the end that all of them share."""
    parts = [name.split("/") for name in names]
    columns = enumerate(zip(*parts, strict=False))
    first = next((at for at, column in columns if len(set(column)) > 1), min(map(len, parts)) - 1)
    rest = [found[first:] for found in parts]
    while min(map(len, rest)) > 1 and len({found[-1] for found in rest}) == 1:
        rest = [found[:-1] for found in rest]
    return ["/".join(found) for found in rest]


class ReadyRuns:
    """Loaders of the likely next runs, each opened, indexed and surveyed in its own thread."""

    def __init__(self, make: Callable[[str], RunLoader]) -> None:
        """`make` returns the loader of a run, which is not started yet."""
        self._make = make
        self._loaders: dict[str, RunLoader] = {}

    def prepare(self, names: Sequence[str]) -> None:
        """Open the runs with these names, and stop those with other names."""
        for name in [name for name in self._loaders if name not in names]:
            self._loaders.pop(name).stop()
        for name in names:
            if name not in self._loaders:
                self._loaders[name] = self._make(name)
                self._loaders[name].start()

    def take(self, name: str) -> RunLoader:
        """Return the loader of a run: the prepared one, or a new one if that is missing or has failed."""
        loader = self._loaders.pop(name, None)
        if loader is None or loader.failed:
            if loader is not None:
                loader.stop()
            loader = self._make(name)
            loader.start()
        return loader

    def wait(self) -> None:
        """Delay all loaders, so that the visible run is read and drawn first."""
        for loader in self._loaders.values():
            loader.wait()

    def stop(self) -> None:
        """Stop all loaders."""
        self.prepare(())


class OtherRuns:
    """The part of the screen that opens other runs. `names` are the runs in the list of the open one."""

    def __init__(self, view: ReviewView, names: tuple[str, ...]) -> None:
        self._view, self.names = view, names

    def neighbour(self, by: int) -> str | None:
        """Return the name of the run `by` places after this one in the list; None if there is none."""
        names, here = self.names, self._view.run.name
        at = names.index(here) + by if here in names else -1
        return names[at] if 0 <= at < len(names) else None

    def end_words(self, by: int) -> str:
        """Return the message that there is no next or previous run."""
        return f"This is the {'last' if by > 0 else 'first'} of {len(self.names):,} runs."

    @property
    def place(self) -> str:
        """The place of the run in the list, such as `3 of 12`; empty if the list has no other run."""
        names, here = self.names, self._view.run.name
        return f"{names.index(here) + 1} of {len(names)}" if len(names) > 1 and here in names else ""

    def linked(self, links: Sequence[str]) -> list[str]:
        """Return the links of a step whose runs exist, each once."""
        return [link for link in dict.fromkeys(links) if self._name(link) is not None]

    def _name(self, link: str) -> str | None:
        from gistpoint.sessions.runs.opening import linked_name

        return linked_name(self._view.run.name, link)

    def follow_link(self) -> None:
        """Open the run that the step started; from the last step, choose among all linked runs."""
        view = self._view
        links = view.run.step.links if view.run.step else ()
        at_end = not links and view.steps.cursor == view.steps.count - 1
        links = view.run.header.links if at_end and view.run.header else links
        names = list(dict.fromkeys(name for link in links if (name := self._name(link)) is not None))
        if names:
            self._pick("This run leads to" if at_end else "Open", names, view.open_run, asks=at_end)
        else:
            view.show_message(
                "This step does not lead to another run." if not links else f"Not here: {links[0]}"
            )

    def compare(self) -> None:
        """Let the user choose another run of the list, and compare it with this one."""
        view = self._view
        others = [name for name in self.names if name != view.run.name]
        if not others:
            view.show_message("There is no other run in the list: open several files or a folder.")
            return

        def open_both(name: str) -> None:
            view.open(view.settings.screens.comparison(view.run.name, name, view.settings))

        self._pick("Compare with", others, open_both)

    def _pick(
        self, title: str, names: list[str], then: Callable[[str], object], *, asks: bool = False
    ) -> None:
        """Let the user choose a run, and call `then`. A single one is chosen at once unless `asks`."""
        from gistpoint.tui.screens.dialogs.ask import PickDialog

        def answered(name: str | None) -> None:
            if name is not None:
                then(name)

        if len(names) == 1 and not asks:
            then(names[0])
        else:
            hides = self._view.run.hides or self._view.settings.blind
            labels = [PurePath(name).name for name in names] if hides else _without_shared(names)
            self._view.open(PickDialog(title, list(zip(names, labels, strict=True))), answered)
