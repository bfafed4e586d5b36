-- The order in which rows were written: the newest of a workspace has the greatest number.
ALTER TABLE mutants ADD COLUMN written BIGINT NOT NULL DEFAULT 0;
CREATE INDEX mutants_by_age ON mutants (workspace, written);
