CREATE TABLE runs (
    -- Sorts by when it was asked for, as text too.
    id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    workspace   TEXT COLLATE "C" NOT NULL DEFAULT 'default',
    kind        TEXT COLLATE "C" NOT NULL,
    name        TEXT             NOT NULL,
    state       TEXT COLLATE "C" NOT NULL CHECK (state IN
        ('queued', 'awaiting_approval', 'running', 'passed', 'failed', 'inconclusive', 'errored', 'cancelled')),
    -- Who executes it.
    daemon      TEXT COLLATE "C" NOT NULL,
    -- Until when its daemon has promised to be there, milliseconds since 1970 by this database's clock;
    -- NULL once it is over.
    lease_until BIGINT,
    -- The run as the API shows it, JSON, without its cells.
    record      TEXT             NOT NULL,
    -- Its cells, a JSON list.
    cells       TEXT             NOT NULL
);
CREATE INDEX runs_by_workspace ON runs (workspace, id);
CREATE INDEX runs_under_way ON runs (daemon) WHERE lease_until IS NOT NULL;
CREATE TABLE run_events (
    run     TEXT COLLATE "C" NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    -- From 1, without holes.
    ordinal BIGINT           NOT NULL,
    type    TEXT COLLATE "C" NOT NULL,
    -- JSON.
    data    TEXT             NOT NULL,
    PRIMARY KEY (run, ordinal)
);
