CREATE TABLE tokens (
    -- SHA-256 of the secret, 64 hex digits. The secret itself is never stored.
    digest     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    workspace  TEXT COLLATE "C" NOT NULL DEFAULT 'default',
    name       TEXT COLLATE "C" NOT NULL,
    role       TEXT COLLATE "C" NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    -- Milliseconds since 1970.
    created_at BIGINT           NOT NULL,
    -- NULL while it is good.
    revoked_at BIGINT
);
CREATE UNIQUE INDEX tokens_that_are_good ON tokens (workspace, name) WHERE revoked_at IS NULL;
