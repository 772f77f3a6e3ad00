"""How much of a file is held or decoded at once; what lies beyond is refused or shown cut, with a line that says so."""

CHUNK = 1 << 20
"""Bytes read at a time while an index is built."""

HEAD = 1 << 16
"""Bytes at either end of a file that are looked at to tell its format."""

RECORD = 64 << 20
"""Bytes of the longest record that is decoded."""

DEPTH = 10_000
"""Brackets that may be open at once in a value that is stepped over; what is decoded has the interpreter's limit."""

DECODED_DEPTH = 150
"""Containers within each other in a value that is used; honest records have fewer than twenty."""

RECORDS = 2_000_000
"""Records of one run that are indexed."""

LONG_RECORD = 1 << 20
"""Bytes from which a record's long strings are decoded only in part."""

LONG_STRING = 1 << 18
"""Bytes from which a string of a long record is cut; the cut text says where the whole of it lies."""

STRING_HEAD = 1 << 16
"""Bytes of a cut string that are decoded."""

RAW_SHOWN = 1 << 16
"""Bytes of a record that can't be decoded that are shown."""

UNPACKED = 4 << 30
"""Bytes that one compressed member may unpack to."""

RATIO = 300
"""How many times its size a member may unpack to; a recorded run packs 5 to 60 times, a bomb 1,000 times and more."""

RATIO_FROM = 32 << 20
"""Unpacked bytes below which the ratio does not matter."""

MEMBERS = 200_000
"""Members of an archive, or files of a folder, that are listed."""

DIRECTORY = 16 << 20
"""Bytes of a zip's directory."""

CACHED_STEPS = 64
CACHED_BYTES = 8 << 20
"""Steps that a document keeps parsed, and how many raw bytes they may have stood for."""
