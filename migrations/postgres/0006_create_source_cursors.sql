-- Does: keeps how far sources that look for messages have come.
-- Works through: nothing
-- Others: go on
-- Oldest binary: 6

CREATE TABLE IF NOT EXISTS source_cursors (
    interface_id integer PRIMARY KEY,
    changed_at   bigint NOT NULL,
    cursor       bytea NOT NULL
);
COMMENT ON TABLE source_cursors IS 'Stored in the transaction that stores the messages before it.';
COMMENT ON COLUMN source_cursors.interface_id IS 'Whose source.';
COMMENT ON COLUMN source_cursors.changed_at IS 'When.';
COMMENT ON COLUMN source_cursors.cursor IS 'The source''s own words, at most 64 KiB.';
