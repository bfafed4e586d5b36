CREATE TABLE mutants (
    -- SHA-256 of the model, the type of mutation, the prompt and the seed; 64 hex digits.
    id        TEXT COLLATE "C" NOT NULL,
    workspace TEXT COLLATE "C" NOT NULL,
    -- What the model wrote: JSON, a list of texts.
    texts     TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
);
