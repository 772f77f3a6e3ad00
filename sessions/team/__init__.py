"""A team's store: a PostgreSQL database in which several machines share tasks, attempts, annotations and studies."""
