"""Limits on the data decoded or stored at once; larger data are refused, or cut and shown with a note.

Therefore, a run of any size can be read in bounded memory (decision 5).
"""

CHUNK = 1 << 20
"""The number of bytes read at a time while an index is built."""

HEAD = 1 << 16
"""The number of bytes at either end of a file that are read to recognise its format."""

RECORD = 64 << 20
"""The maximum number of bytes in a record that is decoded."""

DEPTH = 10_000
"""The maximum number of open brackets in a skipped value; the interpreter limits decoded values."""

DECODED_DEPTH = 150
"""The nesting depth from which a value is ignored; genuine records are nested less than twenty deep."""

RECORDS = 2_000_000
"""The maximum number of records of one run that are indexed."""

LONG_RECORD = 1 << 20
"""The size in bytes above which a record's long strings are decoded only in part."""

LONG_STRING = 1 << 18
"""The size in bytes from which a string in a long record is cut; the cut text records its position."""

STRING_HEAD = 1 << 16
"""How many bytes of a cut string are decoded."""

RAW_SHOWN = 1 << 16
"""The maximum number of bytes shown of a record that can't be decoded."""

UNPACKED = 4 << 30
"""The maximum number of unpacked bytes of one compressed member."""

RATIO = 300
"""The maximum ratio of a member's unpacked size to its packed size.

Recorded runs have ratios of 5 to 60, and bombs of at least 1,000.
"""

RATIO_FROM = 32 << 20
"""The number of unpacked bytes below which the ratio is not checked."""

MEMBERS = 200_000
"""The maximum number of members of an archive, or files in a folder, that are listed."""

DIRECTORY = 16 << 20
"""The maximum number of bytes in a zip's directory."""

CACHED_STEPS = 64
CACHED_BYTES = 8 << 20
"""The maximum number of steps that a document keeps parsed, and of raw bytes from which they were parsed."""
