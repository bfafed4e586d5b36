CREATE TABLE audit (
    -- From 1 without holes.
    number    BIGINT           NOT NULL PRIMARY KEY,
    -- Milliseconds since 1970.
    at        BIGINT           NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL,
    actor     TEXT COLLATE "C" NOT NULL,
    source    TEXT COLLATE "C" NOT NULL,
    action    TEXT COLLATE "C" NOT NULL,
    target    TEXT COLLATE "C" NOT NULL,
    -- SHA-256 of what was there before and is there after; NULL where there is nothing, or nothing was
    -- changed.
    before    TEXT,
    after     TEXT,
    outcome   TEXT COLLATE "C" NOT NULL,
    detail    TEXT             NOT NULL,
    -- The hash of the entry before, and of this one: 64 hex digits.
    previous  TEXT             NOT NULL,
    hash      TEXT             NOT NULL
);
-- How many entries there are and the hash of the newest, so that the loss of the newest is seen. Its row
-- is locked by whoever appends: several daemons make one chain.
CREATE TABLE audit_head (
    one    INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    number BIGINT  NOT NULL,
    hash   TEXT    NOT NULL
);
INSERT INTO audit_head (one, number, hash)
VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');
