CREATE TABLE recordings (
    -- Sorts by start, as text too.
    id         TEXT    NOT NULL PRIMARY KEY,
    workspace  TEXT    NOT NULL DEFAULT 'default',
    name       TEXT,
    -- NULL for every scope of the workspace.
    scope      TEXT,
    state      TEXT    NOT NULL CHECK (state IN ('recording', 'stopped', 'full', 'cut')),
    -- Which daemon records.
    daemon     TEXT    NOT NULL,
    -- Milliseconds since 1970; seen_at is when the daemon last said that it runs.
    started_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    ended_at   INTEGER,
    exchanges  INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    -- Exchanges that found no room.
    left_out   INTEGER NOT NULL
);
CREATE INDEX recordings_by_workspace ON recordings (workspace, id);
CREATE TABLE recorded (
    recording TEXT NOT NULL,
    -- Sorts by start, as text too.
    exchange  TEXT NOT NULL,
    -- Heads and bodies as JSON, secrets taken out.
    entry     TEXT NOT NULL,
    PRIMARY KEY (recording, exchange)
);
