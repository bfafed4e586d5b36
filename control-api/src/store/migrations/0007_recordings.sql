CREATE TABLE recordings (
    -- Sorts by start, as text too.
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    workspace  TEXT COLLATE "C" NOT NULL DEFAULT 'default',
    name       TEXT COLLATE "C",
    -- NULL for every scope of the workspace.
    scope      TEXT COLLATE "C",
    state      TEXT COLLATE "C" NOT NULL CHECK (state IN ('recording', 'stopped', 'full', 'cut')),
    -- Which daemon records.
    daemon     TEXT COLLATE "C" NOT NULL,
    -- Milliseconds since 1970; seen_at is when the daemon last said that it runs.
    started_at BIGINT NOT NULL,
    seen_at    BIGINT NOT NULL,
    ended_at   BIGINT,
    exchanges  BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    -- Exchanges that found no room.
    left_out   BIGINT NOT NULL
);
CREATE INDEX recordings_by_workspace ON recordings (workspace, id);
CREATE TABLE recorded (
    recording TEXT COLLATE "C" NOT NULL,
    -- Sorts by start, as text too.
    exchange  TEXT COLLATE "C" NOT NULL,
    -- Heads and bodies as JSON, secrets taken out.
    entry     TEXT NOT NULL,
    PRIMARY KEY (recording, exchange)
);
