CREATE TABLE runs (
    -- Sorts by when it was asked for, as text too.
    id          TEXT    NOT NULL PRIMARY KEY,
    workspace   TEXT    NOT NULL DEFAULT 'default',
    kind        TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN
        ('queued', 'awaiting_approval', 'running', 'passed', 'failed', 'inconclusive', 'errored', 'cancelled')),
    -- Who executes it.
    daemon      TEXT    NOT NULL,
    -- Until when its daemon has promised to be there, milliseconds since 1970 by this database's clock;
    -- NULL once it is over.
    lease_until INTEGER,
    -- The run as the API shows it, JSON, without its cells.
    record      TEXT    NOT NULL,
    -- Its cells, a JSON list.
    cells       TEXT    NOT NULL
);
CREATE INDEX runs_by_workspace ON runs (workspace, id);
CREATE INDEX runs_under_way ON runs (daemon) WHERE lease_until IS NOT NULL;
CREATE TABLE run_events (
    run     TEXT    NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    -- From 1, without holes.
    ordinal INTEGER          NOT NULL,
    type    TEXT    NOT NULL,
    -- JSON.
    data    TEXT    NOT NULL,
    PRIMARY KEY (run, ordinal)
);
