"""The exports of a study: tables, logs and result files for other programs, and the report."""
