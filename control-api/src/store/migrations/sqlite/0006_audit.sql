CREATE TABLE audit (
    -- From 1 without holes.
    number    INTEGER NOT NULL PRIMARY KEY,
    -- Milliseconds since 1970.
    at        INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    actor     TEXT    NOT NULL,
    source    TEXT    NOT NULL,
    action    TEXT    NOT NULL,
    target    TEXT    NOT NULL,
    -- SHA-256 of what was there before and is there after; NULL where there is nothing, or nothing was
    -- changed.
    before    TEXT,
    after     TEXT,
    outcome   TEXT    NOT NULL,
    detail    TEXT    NOT NULL,
    -- The hash of the entry before, and of this one: 64 hex digits.
    previous  TEXT    NOT NULL,
    hash      TEXT    NOT NULL
);
-- How many entries there are and the hash of the newest, so that the loss of the newest is seen.
CREATE TABLE audit_head (
    one    INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    number INTEGER NOT NULL,
    hash   TEXT    NOT NULL
);
INSERT INTO audit_head (one, number, hash)
VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');
