-- Does: lets the corrected copies of a message be found by their origin; nobody else pays for it.
-- Works through: messages (index)
-- Oldest binary: 4

CREATE INDEX IF NOT EXISTS messages_edited ON messages (origin_id) WHERE origin_kind = 4;
