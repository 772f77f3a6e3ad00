"""Names by which a function can reach its judge, or act as its own: modules, attributes, builtins."""

from __future__ import annotations

import sys

MODULES = frozenset({
    "__main__", "_ctypes", "_frozen_importlib", "_frozen_importlib_external", "_imp", "_interpreters",
    "_posixsubprocess", "_pytest", "_signal", "_testcapi", "_testinternalcapi", "_thread", "_xxsubinterpreters",
    "atexit", "bdb", "cffi", "cgitb", "cloudpickle", "code", "codeop", "copyreg", "cProfile", "ctypes", "dill", "dis",
    "doctest", "ensurepip", "faulthandler", "fcntl", "gc", "hypothesis", "idlelib", "imp", "importlib", "lib2to3",
    "linecache", "marshal", "mmap", "mock", "modulefinder", "nose", "pdb", "pickle", "pkg_resources", "pkgutil",
    "pluggy", "profile", "ptrace", "pty", "py", "pydoc", "pytest", "resource", "rlcompleter", "runpy", "shelve",
    "signal", "site", "symtable", "test", "timeit", "trace", "tracemalloc", "turtledemo", "unittest", "venv",
    "zipimport",
})  # fmt: skip
"""Modules of which any new use is a reason: they see frames and objects, run texts, or judge tests."""
HARMLESS_PARTS = frozenset({
    "importlib.metadata.PackageNotFoundError", "importlib.metadata.version", "pickle.PickleError",
    "pickle.PicklingError", "pickle.UnpicklingError",
})  # fmt: skip
ALLOWED = {
    "sys": frozenset({
        "api_version", "base_exec_prefix", "base_prefix", "builtin_module_names", "byteorder", "copyright",
        "dont_write_bytecode", "exc_info", "exception", "exec_prefix", "executable", "flags", "float_info",
        "float_repr_style", "frozen", "get_int_max_str_digits", "getdefaultencoding", "getfilesystemencodeerrors",
        "getfilesystemencoding", "getrecursionlimit", "getrefcount", "getsizeof", "getwindowsversion", "hash_info",
        "hexversion", "implementation", "int_info", "intern", "is_finalizing", "maxsize", "maxunicode", "platform",
        "platlibdir", "prefix", "ps1", "pycache_prefix", "set_int_max_str_digits", "setrecursionlimit", "stderr",
        "stdin", "stdlib_module_names", "stdout", "thread_info", "version", "version_info", "warnoptions",
    }),
    "os": frozenset({
        "DirEntry", "F_OK", "O_RDONLY", "PathLike", "R_OK", "W_OK", "X_OK", "access", "altsep", "cpu_count", "curdir",
        "devnull", "error", "extsep", "fsdecode", "fsencode", "fspath", "get_terminal_size", "getcwd", "getcwdb",
        "getegid", "geteuid", "getgid", "getlogin", "getpid", "getppid", "getuid", "isatty", "linesep", "listdir",
        "lstat", "name", "pardir", "path", "pathsep", "process_cpu_count", "readlink", "sched_getaffinity", "scandir",
        "sep", "stat", "stat_result", "strerror", "supports_bytes_environ", "terminal_size", "times", "uname",
        "urandom", "walk",
    }),
    "inspect": frozenset({
        "BoundArguments", "FullArgSpec", "Parameter", "Signature", "_empty", "classify_class_attrs", "cleandoc",
        "getcallargs", "getclasstree", "getdoc", "getfullargspec", "getmro", "isabstract", "isasyncgen",
        "isasyncgenfunction", "isawaitable", "isbuiltin", "isclass", "iscode", "iscoroutine", "iscoroutinefunction",
        "isdatadescriptor", "isfunction", "isgenerator", "isgeneratorfunction", "isgetsetdescriptor", "ismethod",
        "ismethoddescriptor", "ismodule", "isroutine", "markcoroutinefunction", "signature", "unwrap",
    }),
}  # fmt: skip
"""Harmless names of these modules; every other name is a reason, and so is the module as a value."""
DENIED = {
    "builtins": frozenset({
        "__build_class__", "__import__", "__loader__", "__spec__", "breakpoint", "compile", "copyright", "credits",
        "eval", "exec", "exit", "globals", "help", "license", "quit",
    }),
    "io": frozenset({"FileIO", "open_code"}),
    "logging": frozenset({"_srcfile", "config", "currentframe"}),
    "string": frozenset({"Formatter"}),
    "threading": frozenset({"excepthook", "setprofile", "setprofile_all_threads", "settrace", "settrace_all_threads"}),
    "traceback": frozenset({
        "FrameSummary", "StackSummary", "extract_stack", "format_list", "format_stack", "print_list", "print_stack",
        "walk_stack", "walk_tb",
    }),
    "types": frozenset({"new_class", "prepare_class"}),
    "typing": frozenset({"ForwardRef", "_eval_type", "get_type_hints"}),
    "warnings": frozenset({"catch_warnings", "formatwarning", "showwarning"}),
    "weakref": frozenset({"finalize"}),
}  # fmt: skip
"""Names of these modules that are a reason; other names are not."""
KINDS = {
    "files": frozenset({
        "builtins.open", "bz2.BZ2File", "bz2.open", "codecs.open", "compileall", "dbm", "distutils", "fileinput",
        "gzip.GzipFile", "gzip.open", "importlib.resources", "io.open", "logging.FileHandler", "logging.handlers",
        "lzma.LZMAFile", "lzma.open", "mailbox", "os.chmod", "os.link", "os.makedirs", "os.mkdir", "os.remove",
        "os.removedirs", "os.rename", "os.renames", "os.replace", "os.rmdir", "os.symlink", "os.truncate", "os.unlink",
        "os.utime", "py_compile", "shutil", "sqlite3", "tarfile", "tempfile", "tokenize.open", "wave", "zipfile",
    }),
    "environment": frozenset({"os.environ", "os.environb", "os.getenv", "os.getenvb", "os.putenv", "os.unsetenv"}),
    "threads": frozenset({"concurrent", "threading.Thread", "threading.Timer"}),
    "processes": frozenset({
        "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell", "asyncio.subprocess", "multiprocessing",
        "os.popen", "os.system", "subprocess", "webbrowser",
    }),
    "ending": frozenset({"builtins.exit", "builtins.quit", "builtins.SystemExit", "sys.exit"}),
}  # fmt: skip
"""Names that are a reason only if the original does nothing of the kind."""
VOUCHED = frozenset({
    "__future__", "abc", "argparse.ArgumentError", "argparse.ArgumentTypeError", "argparse.Namespace", "array", "ast",
    "asyncio", "base64", "binascii", "bisect", "bz2", "calendar", "cmath", "codecs", "collections", "colorsys",
    "configparser.DuplicateOptionError", "configparser.DuplicateSectionError", "configparser.Error",
    "configparser.InterpolationError", "configparser.MissingSectionHeaderError", "configparser.NoOptionError",
    "configparser.NoSectionError", "configparser.ParsingError", "contextlib", "contextvars", "copy", "csv",
    "dataclasses", "datetime", "decimal", "difflib", "email", "enum", "errno", "fnmatch", "fractions", "functools",
    "getopt", "gettext.gettext", "gettext.ngettext", "glob", "graphlib", "grp", "gzip", "hashlib", "heapq", "hmac",
    "html", "http.HTTPMethod", "http.HTTPStatus", "http.cookies", "ipaddress", "itertools", "json", "keyword", "locale",
    "lzma", "math", "mimetypes.guess_all_extensions", "mimetypes.guess_extension", "mimetypes.guess_type", "ntpath",
    "numbers", "opcode", "operator", "optparse", "os", "pathlib", "platform.machine", "platform.node",
    "platform.platform", "platform.python_implementation", "platform.python_version",
    "platform.python_version_tuple", "platform.release", "platform.system", "platform.uname", "platform.version",
    "plistlib", "posixpath", "pprint", "pwd", "queue", "quopri", "random", "re", "reprlib", "sched", "secrets",
    "select", "selectors", "shlex.join", "shlex.quote", "shlex.split", "socket", "sre_compile", "sre_constants",
    "sre_parse", "ssl.SSLError", "stat", "statistics", "stringprep", "struct", "sysconfig.get_path",
    "sysconfig.get_platform", "textwrap", "time", "token", "tokenize", "tomllib", "unicodedata", "urllib.error",
    "urllib.parse", "uuid", "xml.dom.minidom.parseString", "xml.etree.ElementTree.Comment",
    "xml.etree.ElementTree.Element", "xml.etree.ElementTree.ParseError",
    "xml.etree.ElementTree.ProcessingInstruction", "xml.etree.ElementTree.QName",
    "xml.etree.ElementTree.SubElement", "xml.etree.ElementTree.XML", "xml.etree.ElementTree.XMLID",
    "xml.etree.ElementTree.fromstring", "xml.etree.ElementTree.fromstringlist", "xml.etree.ElementTree.indent",
    "xml.etree.ElementTree.iselement", "xml.etree.ElementTree.register_namespace",
    "xml.etree.ElementTree.tostring", "xml.etree.ElementTree.tostringlist", "xml.sax.SAXException",
    "xml.sax.SAXParseException", "xml.sax.saxutils.escape", "xml.sax.saxutils.quoteattr",
    "xml.sax.saxutils.unescape", "zlib", "zoneinfo.ZoneInfo", "zoneinfo.ZoneInfoNotFoundError",
})  # fmt: skip
"""Modules of the standard library that open no file by its path and run no code; any other new use is a reason.

The harmless ones are listed, since there is no end to the ways in which a library opens a file.
"""
STANDARD = sys.stdlib_module_names | {
    "aifc", "asynchat", "asyncore", "audioop", "cgi", "cgitb", "chunk", "crypt", "distutils", "imghdr", "imp",
    "lib2to3", "mailcap", "nis", "nntplib", "ossaudiodev", "pipes", "smtpd", "sndhdr", "spwd", "sunau", "telnetlib",
    "uu", "xdrlib",
}  # fmt: skip
"""Modules of the standard library, with those that a newer Python has dropped: a task may run on an older one."""
PARTLY_VOUCHED = (
    frozenset(path.rsplit(".", count)[0] for path in VOUCHED for count in range(1, path.count(".") + 1)) - VOUCHED
)
"""Modules with some harmless names: importing one is not a reason by itself."""
FILE_METHODS = frozenset({
    "chmod", "hardlink_to", "read_bytes", "read_text", "rmdir", "symlink_to", "touch", "unlink", "write_bytes",
    "write_text",
})  # fmt: skip
"""Methods of a path, whatever they are called on."""
IDENTIFIERS = frozenset({
    "CDLL", "PYTEST_CURRENT_TEST", "__annotate__", "__annotations__", "__builtins__", "__closure__", "__code__",
    "__defaults__", "__dir__", "__get__", "__getattribute__", "__globals__", "__import__", "__kwdefaults__",
    "__loader__", "__reduce__", "__reduce_ex__", "__self__", "__spec__", "__subclasses__", "_current_exceptions",
    "_current_frames", "_exit", "_getframe", "_getframemodulename", "_pytest", "addaudithook", "ag_code", "ag_frame",
    "breakpointhook", "cell_contents", "co_code", "co_consts", "co_names", "cr_code", "cr_frame", "currentframe",
    "displayhook", "dup2", "eval_str", "excepthook", "extract_stack", "f_back", "f_builtins", "f_code", "f_globals",
    "f_locals", "f_trace", "findCaller", "get_objects", "get_referents", "get_referrers", "get_stack", "getattr_static",
    "getinnerframes", "getmembers", "getouterframes", "gi_code", "gi_frame", "gi_yieldfrom", "print_stack", "py_object",
    "pytest_plugins", "pythonapi", "setprofile", "settrace", "stack_info", "subprocess_exec", "subprocess_shell",
    "tb_frame", "unraisablehook", "walk_stack",
})  # fmt: skip
"""Names that are a reason wherever they occur: as an attribute, a keyword, a name that is bound, or within a text."""
TRACEBACK = "a traceback"
"""The path that represents a traceback among the paths of modules: it leads to frames."""
TAKES_TRACEBACKS = frozenset({
    "TracebackException", "extract_tb", "format_exception", "format_tb", "print_exception", "print_tb", "throw",
    "with_traceback",
})  # fmt: skip
"""Functions that a traceback is given to."""
TEXTS = frozenset({
    "__main__", "_thread", "atexit", "builtins", "ctypes", "faulthandler", "gc", "importlib", "inspect", "linecache",
    "marshal", "pickle", "pkgutil", "posix", "pytest", "runpy", "sys", "tracemalloc", "unittest",
})  # fmt: skip
"""Modules that are a reason if a text is their name, or begins with it and a dot."""
PLACES = ("/proc", "/dev/fd", "/dev/shm", "/sys/")
"""Beginnings of paths that lead to the process itself."""
ROOTS = frozenset({
    "_ctypes", "_pytest", "builtins", "ctypes", "gc", "importlib", "inspect", "linecache", "marshal", "os", "pickle",
    "posix", "pytest", "sys", "unittest",
})  # fmt: skip
"""Modules that are recognised as an attribute of any module, with or without a leading underscore."""
INNER = ROOTS | {
    "_thread", "atexit", "bltns", "builtins", "codecs", "copyreg", "faulthandler", "fcntl", "functools", "io",
    "logging", "mmap", "multiprocessing", "operator", "pkgutil", "pydoc", "runpy", "shutil", "signal", "subprocess",
    "tempfile", "threading", "traceback", "tracemalloc", "types", "typing", "warnings", "weakref",
}  # fmt: skip
"""The same for modules of the standard library, which have no other things of these names."""
SAME = {
    "bltns": "builtins",
    "posix": "os",
    "nt": "os",
    "_io": "io",
    "_pickle": "pickle",
    "_ctypes": "ctypes",
    "_thread": "_thread",
}
OPERATORS = frozenset({
    "__bool__", "__class__", "__class_getitem__", "__contains__", "__del__", "__delattr__", "__eq__", "__float__",
    "__format__", "__ge__", "__get__", "__getattr__", "__getattribute__", "__gt__", "__hash__", "__index__",
    "__init_subclass__", "__instancecheck__", "__int__", "__le__", "__length_hint__", "__lt__", "__ne__", "__new__",
    "__prepare__", "__rsub__", "__set_name__", "__sub__", "__subclasscheck__", "__subclasshook__", "__abs__",
    "__array__", "__array_function__", "__array_ufunc__", "__round__", "__len__",
})  # fmt: skip
"""Methods by which an object can decide the result of a comparison with it, or of a question about it."""
COMPARISONS = frozenset({
    "__bool__", "__contains__", "__eq__", "__ge__", "__gt__", "__instancecheck__", "__le__", "__lt__", "__ne__",
    "__subclasscheck__",
})  # fmt: skip
DATA = frozenset({
    "builtins.bool", "builtins.bytes", "builtins.complex", "builtins.dict", "builtins.float", "builtins.frozenset",
    "builtins.int", "builtins.list", "builtins.set", "builtins.str", "builtins.tuple", "builtins.type",
    "collections.OrderedDict", "collections.UserDict", "collections.UserList", "collections.UserString",
    "collections.defaultdict", "collections.deque", "decimal.Decimal", "fractions.Fraction",
})  # fmt: skip
"""Classes of which a new one is derived to look like data."""
CLASS_MAKERS = frozenset({
    "abc.ABCMeta", "builtins.type.__call__", "builtins.type.__new__", "dataclasses.make_dataclass", "enum.EnumMeta",
    "enum.EnumType",
})  # fmt: skip
"""Callables that make a class from a name, bases and a dictionary."""
HARMLESS_CALLS = frozenset({
    "builtins.bytes", "builtins.dict", "builtins.float", "builtins.frozenset", "builtins.int", "builtins.list",
    "builtins.object", "builtins.range", "builtins.set", "builtins.slice", "builtins.str", "builtins.tuple",
    "builtins.type", "collections.OrderedDict", "collections.defaultdict", "datetime.date", "datetime.datetime",
    "datetime.timedelta", "decimal.Decimal", "fractions.Fraction", "operator.attrgetter", "operator.itemgetter",
    "re.compile", "typing.TypeVar",
})  # fmt: skip
"""Callables that are harmless while a module is imported, in a default value or an annotation."""
MAKERS = frozenset({
    "base64.b16decode", "base64.b32decode", "base64.b64decode", "base64.b85decode", "binascii.a2b_base64",
    "binascii.a2b_hex", "binascii.unhexlify", "builtins.bytearray", "builtins.bytes", "builtins.chr", "bz2.decompress",
    "codecs.decode", "gzip.decompress", "lzma.decompress", "struct.pack", "zlib.decompress",
})  # fmt: skip
"""Functions that make a text, or its bytes, from something else."""
MAKING_METHODS = frozenset({"decode", "fromhex", "to_bytes", "tobytes", "translate"})
