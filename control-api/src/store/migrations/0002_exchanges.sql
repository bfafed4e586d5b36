CREATE TABLE exchanges (
    -- Sorts by start, as text too.
    id        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    scope     TEXT COLLATE "C" NOT NULL,
    kind      TEXT COLLATE "C" NOT NULL,
    -- The tools that were called, each between line feeds; empty for none.
    tools     TEXT COLLATE "C" NOT NULL,
    -- In lower case; with the port, the scheme's own included.
    host      TEXT COLLATE "C" NOT NULL,
    authority TEXT COLLATE "C" NOT NULL,
    status    INTEGER,
    -- Ids and modes of the rules that were applied, each between spaces; empty for none.
    faults    TEXT COLLATE "C" NOT NULL,
    -- The exchange as the API shows it, JSON.
    entry     TEXT             NOT NULL
);
CREATE INDEX exchanges_by_scope ON exchanges (scope, id);
CREATE INDEX exchanges_with_faults ON exchanges (id) WHERE faults <> '';
