-- Does: keeps what messages are found by. In buckets of numbers, so that what is written together lies
--   together: a search looks into each bucket, newest first.
-- Works through: nothing
-- Oldest binary: 5

CREATE TABLE IF NOT EXISTS message_terms (
    -- A message and a value it is found by, where its interface wants that.
    bucket     INTEGER NOT NULL, -- the message's number divided by 131072
    term       INTEGER NOT NULL, -- a name and a value, as in `Term`
    message_id INTEGER NOT NULL, -- which message
    PRIMARY KEY (bucket, term, message_id)
) STRICT, WITHOUT ROWID;
