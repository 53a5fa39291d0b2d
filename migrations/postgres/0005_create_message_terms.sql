-- Does: keeps what messages are found by. In buckets of numbers, so that what is written together lies
--   together: a search looks into each bucket, newest first.
-- Works through: nothing
-- Others: go on
-- Oldest binary: 5

CREATE TABLE IF NOT EXISTS message_terms (
    bucket     bigint NOT NULL,
    term       bigint NOT NULL,
    message_id bigint NOT NULL,
    PRIMARY KEY (bucket, term, message_id)
);
COMMENT ON TABLE message_terms IS 'A message and a value it is found by, where its interface wants that.';
COMMENT ON COLUMN message_terms.bucket IS 'The message''s number divided by 8,192.';
COMMENT ON COLUMN message_terms.term IS 'A name and a value, as in `Term`.';
COMMENT ON COLUMN message_terms.message_id IS 'Which message.';
