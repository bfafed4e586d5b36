CREATE TABLE run_exchanges (
    run      TEXT COLLATE "C" NOT NULL,
    -- Sorts by start, as text too.
    exchange TEXT COLLATE "C" NOT NULL,
    -- Heads and bodies as JSON, secrets taken out.
    entry    TEXT NOT NULL,
    PRIMARY KEY (run, exchange)
);
