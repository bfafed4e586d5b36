CREATE TABLE documents (
    workspace  TEXT    NOT NULL DEFAULT 'default',
    kind       TEXT    NOT NULL CHECK (kind IN ('profile', 'suite', 'contract', 'replay')),
    name       TEXT    NOT NULL,
    version    INTEGER NOT NULL CHECK (version > 0),
    body       TEXT    NOT NULL,
    -- Names of variables, a JSON list; NULL where a document expands none. Never their values.
    variables  TEXT,
    digest     TEXT    NOT NULL,
    -- Milliseconds since 1970.
    created_at INTEGER NOT NULL,
    deleted    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (workspace, kind, name, version)
);
