-- Who wrote a version: the name of a token, `-` without tokens.
ALTER TABLE documents ADD COLUMN created_by TEXT;
