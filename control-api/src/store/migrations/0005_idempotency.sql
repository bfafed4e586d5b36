CREATE TABLE idempotency_keys (
    -- SHA-256 of who asked, for what route, with what key; 64 hex digits.
    id        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    workspace TEXT COLLATE "C" NOT NULL,
    -- SHA-256 of what was asked, 64 hex digits.
    request   TEXT COLLATE "C" NOT NULL,
    -- Who carries it out, or did.
    attempt   TEXT COLLATE "C" NOT NULL,
    -- Milliseconds since 1970: how long the attempt is waited for; once there is an answer, how long that
    -- is kept.
    until     BIGINT           NOT NULL,
    -- The answer's; NULL until it is there.
    status    BIGINT,
    -- JSON, a list of names and values; NULL where the answer is not to be kept.
    headers   TEXT,
    body      BYTEA
);
CREATE INDEX idempotency_keys_by_end ON idempotency_keys (until);
