"""What changed between two diffs of one file against the same start, which itself is not known."""

from __future__ import annotations

from gistpoint.core.diffs import DiffError, FileDiff, LineKind, apply, compute

_UNKNOWN_LINE = "\0"


def between(before: FileDiff | None, after: FileDiff | None) -> FileDiff | None:
    """Return how the file after `after` differs from the file after `before`; None where it does not.

    Both are applied to what they tell of the start, with a placeholder for each line that neither shows: lines that
    changed from one to the other, and three around them, are in one of the two. Where they contradict each other,
    `after` itself is returned.
    """
    if before == after:
        return None
    known = [diff for diff in (before, after) if diff is not None]
    if any(diff.binary for diff in known):
        return known[-1]
    try:
        start = _start(known)
        old = start if before is None else apply(start, before)
        new = start if after is None else apply(start, after)
    except DiffError:
        return known[-1]
    first, last = known[0], known[-1]
    old_path = first.old_path if before is None else before.new_path
    new_path = last.old_path if after is None else after.new_path
    found = compute(old, new, old_path=old_path, new_path=new_path)
    return found if found.hunks or old_path != new_path else None


def _start(diffs: list[FileDiff]) -> str:
    lines: dict[int, str] = {}
    end = 0
    for diff in diffs:
        for hunk in diff.hunks:
            # Without old lines, the hunk stands behind the line that it names.
            end = max(end, hunk.old_start + hunk.old_count - 1, hunk.old_start)
            for line in hunk.lines:
                if line.old is not None and line.kind is not LineKind.ADDED:
                    lines[line.old] = line.text + ("\n" if line.newline else "")
    if end > 1_000_000:
        raise DiffError("The diff speaks of more lines than files have.")
    return "".join(lines.get(number, _UNKNOWN_LINE + "\n") for number in range(1, end + 1))
