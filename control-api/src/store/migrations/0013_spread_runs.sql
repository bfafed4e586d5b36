-- The spread run of which this one executes a scenario.
ALTER TABLE runs ADD COLUMN part_of TEXT COLLATE "C";
-- The request of a spread run, for the daemons that execute its scenarios; NULL once it is over.
ALTER TABLE runs ADD COLUMN posted TEXT;
CREATE INDEX runs_by_whole ON runs (part_of, id) WHERE part_of IS NOT NULL;
CREATE INDEX runs_spread ON runs (id) WHERE posted IS NOT NULL;
