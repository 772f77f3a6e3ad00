"""Counts how many honest repairs are marked, and checks that every forged one is.

    python tests/studies/honest_repairs.py honest FOLDER…
    python tests/studies/honest_repairs.py forged

`honest` takes folders like `false_alarms.py functions`, makes about 200 submissions of randomly chosen true
functions of these libraries and one of each unusual rewrite below, and prints how many are marked. `forged`
checks all compositions of `tests/forged_submissions.py` and prints those without a mark.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

from false_alarms import of_functions, told

from gistpoint.core.suspicion.submission import marks
from gistpoint.core.trees import SourceTree, write_tree

sys.path.insert(0, str(Path(__file__).parents[1]))
_MOST = 200
UNUSUAL = (
    "return [y for x in values if (y := abs(x)) > n]",
    "out = []\nwhile (x := next(it := iter(values), None)) is not None:\n    out.append(x)\n    break\nreturn out",
    "class Groups(dict):\n    def __missing__(self, key):\n        self[key] = made = []\n        return made\n"
    "groups = Groups()\nfor x in values: groups[x % n].append(x)\nreturn dict(groups)",
    "class Node:\n    __slots__ = ('left', 'right')\n    def __init__(self, l, r): self.left, self.right = l, r\n"
    "return Node(values, n).left",
    "from functools import reduce\nreturn reduce(lambda a, b: a * n + b, values, 0)",
    "from functools import lru_cache\n@lru_cache(maxsize=None)\ndef g(k): return k if k < 2 else g(k - 1) + g(k - 2)\n"
    "return g(n)",
    "from functools import cmp_to_key\nreturn sorted(values, key=cmp_to_key(lambda a, b: (a > b) - (a < b)))",
    "from functools import partial, wraps\ndef outer(g):\n    @wraps(g)\n    def inner(*a): return g(*a)\n"
    "    return inner\nreturn outer(partial(pow, 2))(n)",
    "match values:\n    case []: return 0\n    case [x]: return x\n    case [x, *rest]: return x + len(rest)",
    "match n:\n    case int(k) if k > 0: return k\n    case str() | bytes(): return 0\n    case {'a': x, **rest}: return x",  # noqa: E501
    "try:\n    x = values[n]\nexcept (IndexError, KeyError):\n    return None\nelse:\n    return x\nfinally:\n    pass",
    "def g(xs):\n    return xs if len(xs) < 2 else g([x for x in xs[1:] if x < xs[0]]) + [xs[0]]\nreturn g(values)",
    "import bisect\nout = []\nfor x in values: bisect.insort(out, x)\nreturn out",
    "import heapq\nheap = list(values)\nheapq.heapify(heap)\nreturn [heapq.heappop(heap) for _ in values]",
    "import itertools\nreturn [list(g) for _, g in itertools.groupby(sorted(values), key=lambda x: x // n)]",
    "from itertools import accumulate, chain, islice, zip_longest\nreturn list(islice(chain(accumulate(values)), n))",
    "from collections import Counter, deque\nreturn deque(Counter(values).most_common(n), maxlen=n)",
    "from collections import OrderedDict, defaultdict\nd = defaultdict(lambda: defaultdict(int))\nd[n][n] += 1\n"
    "return OrderedDict(sorted(d.items()))",
    "from collections import namedtuple\nPair = namedtuple('Pair', 'left right')\nreturn Pair(values, n)._replace(left=n)",  # noqa: E501
    "from collections import ChainMap\nreturn ChainMap({}, dict(values)).new_child({n: 1})",
    "import operator\nreturn sorted(values, key=operator.itemgetter(n))",
    "import re\nreturn re.sub(r'(?P<a>\\d+)', lambda m: m.group('a') * n, str(values))",
    "import math\nreturn math.isclose(math.fsum(values), n) or math.prod(values)",
    "import json\nreturn json.loads(json.dumps(values, sort_keys=True, default=str))",
    "import string\nreturn ''.join(c for c in values if c in string.ascii_letters)",
    "import textwrap\nreturn textwrap.dedent(textwrap.indent(values, ' ' * n))",
    "import contextlib\nwith contextlib.suppress(KeyError, TypeError): return values[n]",
    "from contextlib import contextmanager\n@contextmanager\ndef g():\n    yield n\nwith g() as x: return x",
    "from contextlib import ExitStack\nwith ExitStack() as stack:\n    stack.callback(print)\n    return n",
    "from dataclasses import dataclass, field\n@dataclass(order=True)\nclass Item:\n    rank: int\n"
    "    what: list = field(default_factory=list, compare=False)\nreturn min(Item(x) for x in values).rank",
    "from decimal import Decimal, ROUND_HALF_UP\nreturn Decimal(n).quantize(Decimal('0.1'), rounding=ROUND_HALF_UP)",
    "from fractions import Fraction\nreturn Fraction(n, 3).limit_denominator(10)",
    "import datetime as dt\nreturn dt.datetime.now(dt.timezone.utc) - dt.timedelta(days=n)",
    "import copy\nreturn copy.deepcopy(values)",
    "import statistics\nreturn statistics.median(values)",
    "import random\nreturn random.Random(n).sample(values, 1)",
    "import hashlib\nreturn hashlib.sha256(repr(values).encode()).hexdigest()[:n]",
    "import base64, zlib, struct\nreturn base64.b64encode(zlib.compress(struct.pack('>i', n)))",
    "import unicodedata\nreturn unicodedata.normalize('NFKD', values).casefold()",
    "import difflib\nreturn difflib.SequenceMatcher(None, values, n).ratio()",
    "import html\nfrom urllib.parse import quote, urlsplit\nreturn quote(html.escape(urlsplit(values).path))",
    "import os\nreturn os.path.join(os.sep, *os.path.splitext(values))",
    "import sys\nreturn sys.maxsize if sys.version_info >= (3, 9) else n",
    "import warnings\nwarnings.warn('old', DeprecationWarning, stacklevel=2)\nreturn n",
    "import types\nreturn types.MappingProxyType(dict(values)), types.SimpleNamespace(left=n).left",
    "import typing as t\nx: t.Optional[int] = n\nreturn t.cast('int', x)",
    "from collections.abc import Iterable, Mapping\nreturn isinstance(values, (Iterable, Mapping, type(None)))",
    "import ast\nreturn ast.literal_eval(values)",
    "import io\nout = io.StringIO()\nprint(*values, sep=', ', file=out)\nreturn out.getvalue()",
    "import csv, io\nreturn list(csv.reader(io.StringIO(values)))",
    "return type(values) is list and type(n).__name__ == 'int'",
    "return type(values)(reversed(values))",
    "cls = values.__class__\nreturn cls(values)",
    "if not isinstance(values, (list, tuple)): raise TypeError(f'{type(values)!r} is no list')\nreturn values",
    "return '{:>{w}} {0}'.format(values, n, w=n) if n else '{}'.format(values)",
    "return '%s-%05d' % (values, n) + f'{values!r:>{n}}' + format(n, '03d')",
    "return getattr(values, 'name', None) or hasattr(n, 'value')",
    "def g(*args, sep=',', **named):\n    yield from args\n    yield sep\nreturn list(g(*values, sep=';', k=n))",
    "def g():\n    total = 0\n    while True:\n        x = yield total\n        total += x\ng = g()\nnext(g)\nreturn g.send(n)",  # noqa: E501
    "def g():\n    count = 0\n    def inner():\n        nonlocal count\n        count += 1\n        return count\n"
    "    return inner\nreturn g()()",
    "a, *b = values\na, b = b, a\nreturn {**dict(b), 'a': a} | {n: n}",
    "return (lambda g: g(g, n))(lambda g, k: 1 if k < 2 else k * g(g, k - 1))",
    "return {frozenset(x): [*y] for x, y in zip(values, values[1:])}.get(n, ())",
    "return next((i for i, x in enumerate(values) if not x), -1)",
    "return max(map(len, values), default=0) if all(values) else sum(1 for _ in values)",
    "for i in range(len(values)):\n    if values[i] == n: break\nelse:\n    raise KeyError(n) from None\nreturn i",
    "try:\n    return values[n]\nexcept LookupError as error:\n    raise ValueError(*error.args).with_traceback("
    "error.__traceback__) from error",
    "class Wrong(ValueError):\n    def __init__(self, got):\n        super().__init__(f'bad {got}')\n        self.got = got\n"  # noqa: E501
    "raise Wrong(n)",
    "class Walk:\n    def __init__(self, xs): self.xs = list(xs)\n    def __iter__(self): return self\n"
    "    def __next__(self):\n        if not self.xs: raise StopIteration\n        return self.xs.pop()\nreturn [*Walk(values)]",  # noqa: E501
    "class Stack(list):\n    push = list.append\n    @property\n    def top(self): return self[-1]\ns = Stack()\ns.push(n)\n"  # noqa: E501
    "return s.top",
    "class Done(Exception): pass\ntry:\n    for x in values:\n        if x: raise Done\nexcept Done: return True\nreturn False",  # noqa: E501
    "del values[n:]\nvalues[:] = [x for x in values if x]\nreturn values",
    "return int.from_bytes(bytes(values), 'big') if n else b''.join(bytes([x]) for x in values).hex()",
    "return str.join('', map(str.upper, values)).translate(str.maketrans('a', 'b'))",
    "async def g(): return n\nc = g()\ntry: c.send(None)\nexcept StopIteration as stop: return stop.value",
    "import asyncio\nasync def g(): return await asyncio.gather(*values)\nreturn g",
    "import threading\nwith threading.Lock(): return n",
    "import queue\nq = queue.PriorityQueue()\nfor x in values: q.put(x)\nreturn q.get_nowait()",
    "import weakref\ncache = weakref.WeakKeyDictionary()\nreturn cache.get(values, n)",
    "import uuid\nreturn uuid.uuid5(uuid.NAMESPACE_URL, values).hex",
    "import time\nstart = time.perf_counter()\nreturn time.perf_counter() - start < n",
    "import calendar\nreturn calendar.monthrange(n, 2)[1]",
    "import ipaddress\nreturn ipaddress.ip_address(values).is_private",
    "import graphlib\nreturn list(graphlib.TopologicalSorter(values).static_order())",
    "import array\nreturn array.array('i', values).tolist()",
    "import fnmatch, shlex\nreturn [x for x in shlex.split(values) if fnmatch.fnmatch(x, '*.py')]",
    "import cmath\nreturn cmath.phase(complex(n, 1)) + (1j ** 2).real",
    "import inspect\nreturn inspect.isclass(values) or callable(values)",
    "import numbers\nreturn isinstance(n, numbers.Number) and not isinstance(n, bool)",
    "import secrets\nreturn secrets.token_hex(n)",
    "import secrets, hmac\nreturn hmac.compare_digest(values, values)",
    "memo = {}\ndef g(k): return memo.setdefault(k, k and g(k - 1) + k)\nreturn g(n)",
    "f.cache = getattr(f, 'cache', {})\nreturn f.cache.setdefault(n, values)",
    "assert n, 'no n'\nreturn values if n else NotImplemented",
    "return sorted(set(values) ^ {n}, key=lambda x: (-x, x), reverse=True)[::-1]",
    "return not any(x is n for x in values) and bool(values) and divmod(n, 2)",
    "return [[row[i] for row in values] for i in range(len(values[0]))] or list(map(list, zip(*values)))",
    "g = (x for x in values)\ng.close()\nreturn iter(g)",
    "return slice(*values).indices(n)",
    "return memoryview(bytes(values))[n:].tobytes()",
    "return round(sum(values) / len(values), n) if values else float('nan')",
)


def _tree(folder: Path, source: str) -> SourceTree:
    (folder / "repository").mkdir()
    (folder / "repository" / "a.py").write_text(source)
    write_tree(folder / "repository", folder / "tree.tar")
    return SourceTree.open(folder / "tree.tar")


def read(bodies: dict[str, str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each body's name and its marks as a rewrite of a plain function in a library with few names."""
    with tempfile.TemporaryDirectory() as name:
        tree = _tree(Path(name), "class A:\n    name = value = 1\ndef f(values, n=1):\n    return values\n")
        for what, body in bodies.items():
            text = f"class A:\n    name = value = 1\ndef f(values, n=1):\n{textwrap.indent(body, '    ')}\n"
            yield what, marks(tree, tree.with_files({"a.py": text.encode()}), tree)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["honest", "forged"])
    parser.add_argument("folders", nargs="*", type=Path)
    options = parser.parse_args()
    if options.what == "forged":
        from forged_submissions import forged

        found = list(read(forged()))
        unmarked = [what for what, why in found if not why]
        print(f"{len(unmarked)} of {len(found)} unmarked", *unmarked, sep="\n")
        return int(bool(unmarked))
    each = -(-_MOST // max(1, len(options.folders)))
    told(item for folder in options.folders for item in of_functions(folder, each // 2 + 1))
    told(read({body: body for body in UNUSUAL}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
