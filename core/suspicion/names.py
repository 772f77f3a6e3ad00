"""The names in a submission that are allowed, and those that are reasons to read it.

Pure names are always allowed: the functions, classes and constants of the standard library that open no file,
run no string as code and get no attribute by a computed name. Any other name is a reason, unless the original
or the corrupted function uses it too, which excuses it; for most modules, the library's own use excuses it as
well. `marks.py` applies these lists. It also checks the calls to `getattr`, `attrgetter`, `methodcaller` and
`format`, which are pure only if the name in them is written out (decision 115).
"""

from __future__ import annotations

import array
import builtins
import collections
import contextlib
import contextvars
import datetime
import decimal
import difflib
import fractions
import functools
import graphlib
import hashlib
import io
import ipaddress
import itertools
import pathlib
import queue
import random
import re
import string
import sys
import threading
import time
import types
import uuid


def _listed(*lines: str) -> frozenset[str]:
    """Return the whitespace-separated names in the lines."""
    return frozenset(" ".join(lines).split())


STANDARD = sys.stdlib_module_names | _listed(
    "aifc asynchat asyncore audioop cgi cgitb chunk crypt distutils imghdr imp lib2to3 mailcap nis nntplib",
    "ossaudiodev pipes smtpd sndhdr spwd sunau telnetlib uu xdrlib",
)
"""Modules of the standard library, including removed ones, because a task may run on an older Python."""
PURE_MODULES = _listed(
    "binascii bisect cmath collections.abc colorsys datetime decimal errno fractions heapq ipaddress",
    "itertools keyword math numbers secrets stat statistics struct textwrap unicodedata zlib",
)
"""Modules whose public names are all pure, except for the modules that they import."""
_PURE_NAMES = {
    "__future__": "annotations",
    "array": "array",
    "ast": "literal_eval",
    "asyncio": (
        "CancelledError Event Future Lock Queue Semaphore TimeoutError gather get_running_loop iscoroutine"
        " iscoroutinefunction isfuture sleep wait wait_for"
    ),
    "base64": (
        "a85decode a85encode b16decode b16encode b32decode b32encode b64decode b64encode b85decode b85encode"
        " standard_b64decode standard_b64encode urlsafe_b64decode urlsafe_b64encode"
    ),
    "calendar": "day_abbr day_name isleap leapdays month_abbr month_name monthrange timegm weekday",
    "codecs": "BOM_UTF16_BE BOM_UTF16_LE BOM_UTF32_BE BOM_UTF32_LE BOM_UTF8",
    "collections": "ChainMap Counter OrderedDict UserDict UserList abc defaultdict deque namedtuple",
    "configparser": (
        "DuplicateOptionError DuplicateSectionError Error InterpolationError MissingSectionHeaderError"
        " NoOptionError NoSectionError ParsingError"
    ),
    "contextlib": "AsyncExitStack ExitStack asynccontextmanager closing contextmanager nullcontext suppress",
    "contextvars": "ContextVar",
    "copy": "copy deepcopy",
    "csv": "DictReader DictWriter Error QUOTE_ALL QUOTE_MINIMAL QUOTE_NONE QUOTE_NONNUMERIC reader writer",
    "dataclasses": "FrozenInstanceError MISSING asdict astuple dataclass field is_dataclass replace",
    "difflib": "Differ SequenceMatcher get_close_matches ndiff unified_diff",
    "fnmatch": "filter fnmatch fnmatchcase translate",
    "functools": "cache cached_property cmp_to_key lru_cache partial reduce wraps",
    "gettext": "gettext ngettext",
    "graphlib": "CycleError TopologicalSorter",
    "hashlib": "blake2b blake2s md5 new pbkdf2_hmac sha1 sha224 sha256 sha384 sha3_256 sha3_512 sha512",
    "hmac": "compare_digest digest new",
    "html": "escape unescape",
    "http": "HTTPMethod HTTPStatus",
    "inspect": (
        "cleandoc isabstract isasyncgen isasyncgenfunction isawaitable isbuiltin isclass iscoroutine"
        " iscoroutinefunction isfunction isgenerator isgeneratorfunction ismethod isroutine"
    ),
    "io": "BytesIO StringIO",
    "json": "JSONDecodeError dumps loads",
    "operator": (
        "abs add and_ attrgetter concat contains countOf delitem eq floordiv ge getitem gt iadd iand iconcat"
        " imul index indexOf inv invert ior is_ is_not isub itemgetter ixor le length_hint lshift lt matmul"
        " methodcaller mod mul ne neg not_ or_ pos pow rshift setitem sub truediv truth xor"
    ),
    "os": "PathLike altsep curdir extsep fsdecode fsencode fspath linesep name pardir path pathsep sep",
    "pprint": "pformat",
    "queue": "Empty Full LifoQueue PriorityQueue Queue",
    "random": "Random choice choices gauss getrandbits randint random randrange sample seed shuffle uniform",
    "re": (
        "A ASCII DOTALL I IGNORECASE M MULTILINE Match Pattern S U UNICODE VERBOSE X compile error escape"
        " findall finditer fullmatch match search split sub subn"
    ),
    "shlex": "join quote split",
    "string": (
        "Template ascii_letters ascii_lowercase ascii_uppercase capwords digits hexdigits octdigits printable"
        " punctuation whitespace"
    ),
    "sys": (
        "byteorder float_info getdefaultencoding getrecursionlimit getsizeof hash_info hexversion"
        " implementation int_info intern maxsize maxunicode platform version version_info"
    ),
    "threading": "Condition Event Lock RLock Semaphore current_thread get_ident local",
    "time": (
        "gmtime localtime mktime monotonic monotonic_ns perf_counter perf_counter_ns process_time sleep"
        " strftime strptime struct_time time time_ns"
    ),
    "types": "BuiltinFunctionType GeneratorType MappingProxyType MethodType NoneType SimpleNamespace",
    "urllib.parse": (
        "parse_qs parse_qsl quote quote_from_bytes quote_plus unquote unquote_plus unquote_to_bytes"
        " urldefrag urlencode urljoin urlparse urlsplit urlunparse urlunsplit"
    ),
    "uuid": "NAMESPACE_DNS NAMESPACE_URL UUID uuid3 uuid4 uuid5",
    "warnings": "warn",
    "weakref": "WeakKeyDictionary WeakSet WeakValueDictionary ref",
    "xml.etree.ElementTree": "Comment Element ParseError QName SubElement fromstring iselement tostring",
    "xml.sax.saxutils": "escape quoteattr unescape",
    "zoneinfo": "ZoneInfo ZoneInfoNotFoundError",
}
_PATHS = (  # functions of `os.path`, which may look up files but open none
    "abspath altsep basename commonpath commonprefix curdir dirname exists expanduser extsep isabs isdir"
    " isfile join normcase normpath pardir pathsep relpath sep split splitdrive splitext"
)
_TYPES = (
    "AbstractSet Any AnyStr AsyncGenerator AsyncIterable AsyncIterator Awaitable Callable ChainMap ClassVar"
    " Collection Concatenate Container ContextManager Coroutine Counter DefaultDict Deque Dict Final"
    " FrozenSet Generator Generic Hashable IO ItemsView Iterable Iterator KeysView List Literal Mapping Match"
    " MutableMapping MutableSequence MutableSet NamedTuple Never NoReturn Optional OrderedDict ParamSpec"
    " Pattern Reversible Self Sequence Set Sized SupportsAbs SupportsFloat SupportsIndex SupportsInt"
    " TYPE_CHECKING Tuple Type TypeAlias TypeVar Union ValuesView cast overload"
)
PURE = frozenset(
    f"{module}.{name}"
    for module, names in {
        **_PURE_NAMES,
        "os.path": _PATHS,
        "posixpath": _PATHS,
        "ntpath": _PATHS,
        "typing": _TYPES,
    }.items()
    for name in names.split()
) | frozenset(f"pathlib.{name}" for name in ("PurePath", "PurePosixPath", "PureWindowsPath"))
"""Functions, classes and constants of the standard library that any submission may use."""
IMPORTABLE = PURE_MODULES | {
    "typing",
    "os.path",
    "posixpath",
    "ntpath",
    "pathlib",
    "collections",
    "xml",
    "urllib",
    *_PURE_NAMES,
}
"""Modules that have pure names, and the packages around them: an `import` of one is not a mark."""
PURE_BUILTINS = _listed(
    "ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BufferError",
    "BytesWarning ConnectionError DeprecationWarning EOFError Ellipsis Exception ExceptionGroup False",
    "FileExistsError FileNotFoundError FloatingPointError FutureWarning GeneratorExit IOError ImportError",
    "ImportWarning IndexError InterruptedError IsADirectoryError KeyError LookupError MemoryError",
    "ModuleNotFoundError NameError None NotADirectoryError NotImplemented NotImplementedError OSError",
    "OverflowError PendingDeprecationWarning PermissionError RecursionError ReferenceError",
    "ResourceWarning RuntimeError RuntimeWarning StopAsyncIteration StopIteration SyntaxError",
    "SyntaxWarning SystemError TimeoutError True TypeError UnboundLocalError UnicodeDecodeError",
    "UnicodeEncodeError UnicodeError UnicodeWarning UserWarning ValueError Warning ZeroDivisionError",
    "__class__ __debug__ __name__ abs aiter all anext any ascii bin bool bytearray bytes callable chr",
    "classmethod complex delattr dict dir divmod enumerate filter float format frozenset getattr hasattr",
    "hash hex id int isinstance issubclass iter len list map max memoryview min next object oct ord pow",
    "print property range repr reversed round set setattr slice sorted staticmethod str sum super tuple",
    "type zip",
)
"""Built-ins that any submission may use.

`marks` restricts `type`, `getattr`, `setattr` and `delattr`.
"""
EXCUSED_TOGETHER = {
    "files": _listed(
        "builtins.open bz2 codecs.open compileall dbm distutils fileinput gzip io.FileIO io.OpenWrapper",
        "io.open io.open_code linecache logging.FileHandler logging.basicConfig logging.config",
        "logging.handlers lzma mailbox os.chmod os.link os.listdir os.makedirs os.mkdir os.open os.read",
        "os.remove os.removedirs os.rename os.renames os.replace os.rmdir os.scandir os.symlink os.truncate",
        "os.unlink os.utime os.walk py_compile shutil sqlite3 tarfile tempfile tokenize.open wave zipfile",
    ),
    "environment": frozenset(
        {"os.environ", "os.environb", "os.getenv", "os.getenvb", "os.putenv", "os.unsetenv"}
    ),
    "threads": frozenset({"concurrent", "threading.Thread", "threading.Timer"}),
    "processes": _listed(
        "asyncio.create_subprocess_exec asyncio.create_subprocess_shell asyncio.subprocess multiprocessing",
        "os.popen os.system subprocess webbrowser",
    ),
    "ending": frozenset({"builtins.SystemExit", "builtins.exit", "builtins.quit", "sys.exit"}),
}
"""Names that are reasons to read a submission, by kind.

If the original function uses one name of a kind, all names of that kind are excused. The library's own use
excuses none.
"""
ONLY_BY_ORIGINAL = _listed(
    "__main__ _ctypes _frozen_importlib _frozen_importlib_external _imp _interpreters _posixsubprocess",
    "_pytest _signal _testcapi _testinternalcapi _thread _xxsubinterpreters abc ast atexit bdb builtins",
    "cProfile cffi cgitb cloudpickle code codecs codeop copyreg ctypes dill dis doctest ensurepip enum",
    "faulthandler fcntl functools gc hypothesis idlelib imp importlib inspect io lib2to3 linecache marshal",
    "mmap mock modulefinder nose operator optparse os pdb pickle pkg_resources pkgutil pluggy profile ptrace",
    "pty py pydoc pytest reprlib resource rlcompleter runpy shelve signal site symtable sys test threading",
    "timeit trace traceback tracemalloc turtledemo types typing unittest venv weakref zipimport",
)
"""Modules whose names, except for pure ones, only the original function excuses.

The library's own use excuses none of them.
"""
GUARDED = frozenset({"logging", "warnings"})
"""Modules from which the library's own use excuses only the names in `FROM_LIBRARY`."""
FROM_LIBRARY = frozenset(
    {"logging.getLogger", "logging.DEBUG", "logging.INFO", "logging.WARNING", "logging.ERROR"}
)
"""Names of guarded modules that are excused if the library itself uses them."""
REACHING = _listed(
    "CDLL PYTEST_CURRENT_TEST __annotate__ __annotations__ __builtins__ __closure__ __code__ __defaults__",
    "__dict__ __dir__ __get__ __getattribute__ __getstate__ __globals__ __import__ __kwdefaults__",
    "__loader__ __reduce__ __reduce_ex__ __self__ __spec__ __subclasses__ _current_exceptions",
    "_current_frames _evaluate _exit _getframe _getframemodulename _pytest addFilter addHandler",
    "addaudithook ag_await ag_code ag_frame breakpointhook cell_contents co_code co_consts co_names",
    "cr_await cr_code cr_frame cr_origin currentframe displayhook dup2 ensure_value eval_str excepthook",
    "extract_stack f_back f_builtins f_code f_generator f_globals f_lineno f_locals f_trace findCaller",
    "get_objects get_referents get_referrers get_stack getattr_static getinnerframes getmembers",
    "getouterframes gi_code gi_frame gi_yieldfrom makeRecord print_stack py_object pytest_plugins",
    "pythonapi setLogRecordFactory setprofile settrace stack_info subprocess_exec subprocess_shell",
    "tb_frame unraisablehook walk_stack walk_tb",
)
"""Attributes that give access to frames, code, namespaces or all objects.

Only the original or the corrupted function excuses them.
"""
FILE_METHODS = _listed(
    "chmod hardlink_to listdir open read_bytes read_text rmdir scandir symlink_to touch unlink write_bytes",
    "write_text",
)
"""Methods that read or change files, marked on any object."""
SETTERS = frozenset({"__delattr__", "__setattr__"})
"""Methods that change an attribute given by name."""
ATTRIBUTE_BUILTINS = frozenset({"builtins.delattr", "builtins.getattr", "builtins.setattr"})
"""Built-ins that get or change an attribute given by name."""
LOOKUP_BUILTINS = ATTRIBUTE_BUILTINS | {"builtins.hasattr"}
"""Built-ins that take the name of an attribute."""
FORMATTERS = frozenset({"format", "format_map"})
"""String methods whose replacement fields can read attributes."""
DEFINABLE = _listed(
    "__aenter__ __aexit__ __aiter__ __all__ __anext__ __annotations__ __await__ __call__ __delitem__",
    "__doc__ __enter__ __exit__ __getitem__ __init__ __iter__ __match_args__ __missing__ __module__",
    "__name__ __next__ __post_init__ __qualname__ __repr__ __reversed__ __setitem__ __slots__ __str__",
    "__version__",
)
"""Special names that new code may define, because none affects comparisons or an object's apparent type."""
SETTABLE = _listed(
    "__cause__ __context__ __doc__ __module__ __name__ __notes__ __qualname__ __suppress_context__",
    "__traceback__ __wrapped__",
)
"""Special attributes that new code may set."""
DECIDING_METHODS = _listed(
    "__abs__ __array__ __array_function__ __array_ufunc__ __bool__ __class__ __class_getitem__ __contains__",
    "__del__ __delattr__ __eq__ __float__ __format__ __ge__ __get__ __getattr__ __getattribute__ __gt__",
    "__hash__ __index__ __init_subclass__ __instancecheck__ __int__ __le__ __len__ __length_hint__ __lt__",
    "__ne__ __new__ __prepare__ __round__ __rsub__ __set_name__ __sub__ __subclasscheck__ __subclasshook__",
)
"""Methods that can decide the result of a comparison or a check of their object."""
COMPARISONS = _listed(
    "__bool__ __contains__ __eq__ __ge__ __gt__ __instancecheck__ __le__ __lt__ __ne__ __subclasscheck__"
)
"""Methods that compare or check an object directly; replacing a correct one is a reason for a mark."""
OF_CLASSES = frozenset({"__doc__", "__module__", "__mro__", "__name__", "__qualname__"})
"""Special attributes of a value's class that a submission may read."""
SHOWING = _listed("callable format hash id isinstance issubclass print repr str super")
"""Built-ins that may get a value's class as an argument, because they do not return it."""
HARMLESS_CALLS = _listed(
    "builtins.bytes builtins.dict builtins.float builtins.frozenset builtins.int builtins.list",
    "builtins.object builtins.range builtins.set builtins.slice builtins.str builtins.tuple builtins.type",
    "collections.OrderedDict collections.defaultdict datetime.date datetime.datetime datetime.timedelta",
    "decimal.Decimal fractions.Fraction functools.lru_cache functools.wraps operator.attrgetter",
    "operator.itemgetter re.compile typing.TypeVar",
)
"""Callables that are harmless at import: in a default value, a decorator or an annotation."""
_PLAIN_VALUES: tuple[object, ...] = (
    *(value for name, value in vars(builtins).items() if name in PURE_BUILTINS and name != "type"),
    *(value for value in vars(collections).values() if isinstance(value, type)),
    datetime.datetime,
    datetime.timedelta,
    datetime.timezone,
    decimal.Decimal,
    decimal.Context,
    fractions.Fraction,
    array.array,
    functools.partial,
    functools.lru_cache(abs),
    io.BytesIO,
    io.StringIO,
    random.Random,
    re.Match,
    re.Pattern,
    string.Template,
    threading.Lock(),
    types.GeneratorType,
    types.CoroutineType,
    types.AsyncGeneratorType,
    types.MappingProxyType,
    contextlib.ExitStack,
    contextvars.ContextVar,
    difflib.SequenceMatcher,
    graphlib.TopologicalSorter,
    hashlib.sha256(),
    ipaddress.IPv4Network,
    ipaddress.IPv6Address,
    pathlib.PurePath,
    queue.Queue,
    threading.Event,
    time.struct_time,
    uuid.UUID,
)
_SPLIT_ADDRESS = frozenset(
    [
        "fragment",
        "geturl",
        "hostname",
        "netloc",
        "params",
        "password",
        "path",
        "port",
        "query",
        "scheme",
        "username",
    ],
)
"""Attributes of the results of `urllib.parse`, listed here so that it need not be imported."""
_SPECIAL = SETTABLE - {"__notes__"} | {"__class__"}
"""Special attributes that new code may read."""
_SPECIAL_METHODS = frozenset(
    name
    for value in (int, float, complex, str, bytes, list, dict, set, tuple, range)
    for name in dir(value)
    if name.startswith("__") and callable(getattr(value, name))
)
"""The special methods of plain values."""
ATTRIBUTES = (
    (
        frozenset(name for value in _PLAIN_VALUES for name in dir(value) if not name.startswith("_"))
        # Methods of named tuples, and some that `dir` does not list on older Pythons.
        | {
            "_asdict",
            "_replace",
            "add_note",
            "aclose",
            "asend",
            "athrow",
            "exceptions",
            "removeprefix",
            "removesuffix",
        }
        | _SPLIT_ADDRESS
        | _SPECIAL
        | (_SPECIAL_METHODS - {"__init_subclass__", "__subclasshook__"})
    )
    - REACHING
    - SETTERS
    - FORMATTERS
    - FILE_METHODS
)
"""Methods and attributes of plain values, exceptions, generators and functions: they are never marked."""
FOUND_MODULES = _listed(
    "_ctypes _pytest _thread atexit bltns builtins ctypes faulthandler gc importlib inspect linecache",
    "marshal os pickle posix pytest sys unittest",
)
"""Modules that `meaning.canonical` recognises at any place of a chain of attributes, as in `x._sys`."""
USUAL_NAMES = {
    "bltns": "builtins",
    "posix": "os",
    "nt": "os",
    "_io": "io",
    "_pickle": "pickle",
    "_operator": "operator",
}
"""The usual name of a module, by another name under which it can be imported."""


_NAMED_LIKE_MODULES = frozenset(
    {"bisect.bisect", "datetime.datetime", "datetime.time", "unicodedata.decimal"}
)
"""Functions and classes of pure modules that share the name of a standard-library module."""


def leading_paths(path: str) -> list[str]:
    """Return the paths that begin a dotted path, and the path itself: `a`, `a.b` and `a.b.c` for `a.b.c`."""
    return [*itertools.accumulate(path.split("."), "{}.{}".format)]


def is_special(name: str) -> bool:
    """Return whether Python itself looks up a name, such as `__eq__`."""
    return name.startswith("__") and name.endswith("__")


def kind_of(path: str) -> str:
    """Return the kind in `EXCUSED_TOGETHER` that a path belongs to; empty if it belongs to none."""
    leading = leading_paths(path)
    for kind, paths in EXCUSED_TOGETHER.items():
        if not paths.isdisjoint(leading):
            return kind
    return ""


def is_pure(path: str) -> bool:
    """Return whether a path names a pure function, class or constant of the standard library."""
    if path in PURE:
        return True
    module, _, name = path.rpartition(".")
    if module not in PURE_MODULES or name.startswith("_"):
        return False
    # A module that this module imports is not one of its own names.
    return name not in STANDARD or path in _NAMED_LIKE_MODULES
