-- Does: lets the terms of the newest messages wait in one place, in the order of the messages, until there
--   are enough to be filed together: each by itself would change a page of its own.
-- Works through: message_terms (rows)
-- Oldest binary: 7
--
-- The buckets of message_terms become smaller, so that filing stays within few pages.

CREATE TABLE IF NOT EXISTS fresh_terms (
    -- What messages are found by that is not in message_terms yet.
    message_id INTEGER PRIMARY KEY, -- which message
    terms      BLOB NOT NULL -- its terms, eight bytes each, little endian
) STRICT;

UPDATE OR IGNORE message_terms SET bucket = message_id / 8192;
