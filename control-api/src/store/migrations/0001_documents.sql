CREATE TABLE documents (
    workspace  TEXT COLLATE "C" NOT NULL DEFAULT 'default',
    kind       TEXT COLLATE "C" NOT NULL CHECK (kind IN ('profile', 'suite', 'contract', 'replay')),
    name       TEXT COLLATE "C" NOT NULL,
    version    BIGINT           NOT NULL CHECK (version > 0),
    body       TEXT             NOT NULL,
    -- Names of variables, a JSON list; NULL where a document expands none. Never their values.
    variables  TEXT,
    digest     TEXT             NOT NULL,
    -- Milliseconds since 1970.
    created_at BIGINT           NOT NULL,
    deleted    BOOLEAN          NOT NULL DEFAULT false,
    PRIMARY KEY (workspace, kind, name, version)
);
