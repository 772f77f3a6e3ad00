"""Limits on the data decoded or kept at once; anything larger is refused, or cut and shown with a note.

Therefore, a run of any size is read in bounded memory (decision 5).
"""

CHUNK = 1 << 20
"""Bytes read at a time while an index is built."""

HEAD = 1 << 16
"""Bytes at either end of a file that are read to recognise its format."""

RECORD = 64 << 20
"""Bytes of the longest record that is decoded."""

DEPTH = 10_000
"""Brackets that may be open at once in a skipped value; decoded values have the interpreter's limit."""

DECODED_DEPTH = 150
"""The nesting depth from which a value is not used; genuine records are nested less than twenty deep."""

RECORDS = 2_000_000
"""Records of one run that are indexed."""

LONG_RECORD = 1 << 20
"""Size in bytes above which a record's long strings are decoded only in part."""

LONG_STRING = 1 << 18
"""Size in bytes from which a string of a long record is cut; the cut text records where the whole is."""

STRING_HEAD = 1 << 16
"""Bytes of a cut string that are decoded."""

RAW_SHOWN = 1 << 16
"""Bytes shown of a record that can't be decoded."""

UNPACKED = 4 << 30
"""Bytes that one compressed member may unpack to."""

RATIO = 300
"""The maximum ratio of a member's unpacked size to its packed size.

Recorded runs reach 5 to 60, bombs at least 1,000.
"""

RATIO_FROM = 32 << 20
"""Unpacked bytes below which the ratio does not matter."""

MEMBERS = 200_000
"""The maximum number of members of an archive, or files in a folder, that are listed."""

DIRECTORY = 16 << 20
"""Bytes of a zip's directory."""

CACHED_STEPS = 64
CACHED_BYTES = 8 << 20
"""The maximum number of steps that a document keeps parsed, and of raw bytes from which they are made."""
