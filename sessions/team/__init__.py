"""A team's store: a PostgreSQL database that shares tasks, attempts, annotations and studies.

It contains only copies of machines' files, so it can be dropped and created again (decision 104).
"""

FILE = "store.toml"
"""The file in the config folder that names the chosen store; it does not exist if only files are used."""
