CREATE TABLE tokens (
    -- SHA-256 of the secret, 64 hex digits. The secret itself is never stored.
    digest     TEXT    NOT NULL PRIMARY KEY,
    workspace  TEXT    NOT NULL DEFAULT 'default',
    name       TEXT    NOT NULL,
    role       TEXT    NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    -- Milliseconds since 1970.
    created_at INTEGER NOT NULL,
    -- NULL while it is good.
    revoked_at INTEGER
);
CREATE UNIQUE INDEX tokens_that_are_good ON tokens (workspace, name) WHERE revoked_at IS NULL;
