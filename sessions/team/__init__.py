"""A team's store: a PostgreSQL database in which several machines share tasks, attempts, annotations and
studies.
"""

FILE = "store.toml"
"""The file in the config folder that names the chosen store; there is none if files alone are used."""
