-- The corrected copies of a message are found by their origin; nobody else pays for it. Works through
-- messages, once, to fill the index.

CREATE INDEX IF NOT EXISTS messages_edited ON messages (origin_id, id) WHERE origin_kind = 4;
