CREATE TABLE fleet (
    -- Counts the switches of the fleet. The row is also their lock.
    generation BIGINT NOT NULL PRIMARY KEY
);
INSERT INTO fleet (generation) VALUES (0);
CREATE TABLE fleet_chaos (
    workspace  TEXT COLLATE "C" NOT NULL,
    -- `*`: all scopes of the workspace; of the default workspace: all scopes.
    scope      TEXT COLLATE "C" NOT NULL,
    -- The switch that wrote the row.
    generation BIGINT           NOT NULL,
    -- The request as JSON, with its seed and without its time to live; NULL: chaos was ended.
    body       TEXT,
    -- Name of the token that switched.
    actor      TEXT COLLATE "C" NOT NULL,
    -- Milliseconds since 1970 by this database's clock, as all times here.
    switched_at BIGINT          NOT NULL,
    expires_at BIGINT,
    PRIMARY KEY (workspace, scope)
);
CREATE TABLE daemons (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    started_at BIGINT           NOT NULL,
    seen_at    BIGINT           NOT NULL,
    -- The last switch that it has applied.
    generation BIGINT           NOT NULL,
    -- What the API shows of it, JSON.
    record     TEXT             NOT NULL
);
