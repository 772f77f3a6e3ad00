-- One table of lines for attempts, annotations and studies; what the first schema's tables have is moved into it.
-- An index makes lines unique, since `pg_restore --clean` can't drop the primary key of a partition.
CREATE TABLE lines (
    file text NOT NULL,  -- attempts, reviews, validations, ..., studies/ID/log
    writer text NOT NULL,  -- an attempt, a published journal, NAME@MACHINE
    number integer NOT NULL,  -- from 1
    line bytea NOT NULL,
    sha256 text NOT NULL,
    machine text NOT NULL,  -- the one that sent it; empty if that is not known
    op text,  -- its uuid, if the line is an operation; the columns that follow are indexes of what it tells
    utc_ms bigint,
    subject text,  -- of a published journal: who published it
    kind text,
    assignment text,  -- that a line of a study begins, as the first to do so
    study text GENERATED ALWAYS AS (CASE WHEN file LIKE 'studies/%' THEN split_part(file, '/', 2) END) STORED
) PARTITION BY LIST (file);
CREATE TABLE lines_of_attempts PARTITION OF lines (
    FOREIGN KEY (writer) REFERENCES attempts (id) ON DELETE CASCADE
) FOR VALUES IN ('attempts');
CREATE TABLE lines_of_annotations PARTITION OF lines
    FOR VALUES IN ('reviews', 'validations', 'glances', 'external-results');
CREATE TABLE lines_of_studies PARTITION OF lines (
    FOREIGN KEY (study) REFERENCES studies (id) ON DELETE CASCADE
) DEFAULT;
CREATE UNIQUE INDEX lines_once ON lines (file, writer, number);
CREATE UNIQUE INDEX annotation_once ON lines_of_annotations (file, op);
CREATE INDEX annotations_by_subject ON lines_of_annotations (file, subject);
CREATE UNIQUE INDEX operation_once ON lines_of_studies (file, op);
CREATE UNIQUE INDEX beginning_once ON lines_of_studies (file, assignment) WHERE kind = 'begun';
CREATE INDEX lines_erased ON lines_of_studies (file) WHERE subject = 'erased';
INSERT INTO lines (file, writer, number, line, sha256, machine)
    SELECT 'attempts', attempt, seq, line, sha256, machine FROM events;
INSERT INTO lines (file, writer, number, line, sha256, machine, op, utc_ms, subject, kind)
    SELECT folder, reviewer || '@', row_number() OVER (PARTITION BY folder, reviewer ORDER BY number),
        line, encode(sha256(line), 'hex'), '', op, utc_ms, subject, kind FROM operations;
INSERT INTO lines (file, writer, number, line, sha256, machine, op, utc_ms, subject, kind, assignment)
    SELECT 'studies/' || study || '/' || folder, writer || CASE folder WHEN 'reviews' THEN '@' ELSE '' END, number,
        line, encode(sha256(line), 'hex'), coalesce(substring(writer FROM '@([^@]*)$'), ''),
        op, utc_ms, subject, kind, assignment FROM study_op;
DROP VIEW public_operations;
CREATE VIEW public_operations AS
    SELECT file AS folder, op, left(writer, -1 - length(substring(writer FROM '[^@]*$'))) AS reviewer,
        utc_ms, subject, kind FROM lines_of_annotations;
DROP TABLE events;
DROP TABLE operations;
DROP TABLE study_op;
-- Programs of revision 0001 look for this before they compare revisions; without it they tell of missing rights.
CREATE VIEW events AS SELECT writer AS attempt, number AS seq, line, sha256, machine FROM lines_of_attempts;
