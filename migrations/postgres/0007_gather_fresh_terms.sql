-- Does: lets the terms of the newest messages wait in one place, in the order of the messages, until there
--   are enough to be filed together: each by itself would change a page of its own.
-- Works through: nothing
-- Others: go on
-- Oldest binary: 7
--
-- Here the buckets of message_terms were small from the first.

CREATE TABLE IF NOT EXISTS fresh_terms (
    message_id bigint PRIMARY KEY,
    terms      bytea NOT NULL
);
COMMENT ON TABLE fresh_terms IS 'What messages are found by that is not in message_terms yet.';
COMMENT ON COLUMN fresh_terms.message_id IS 'Which message.';
COMMENT ON COLUMN fresh_terms.terms IS 'Its terms, eight bytes each, little endian.';
