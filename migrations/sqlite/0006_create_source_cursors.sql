-- Does: keeps how far sources that look for messages have come.
-- Works through: nothing
-- Oldest binary: 6

CREATE TABLE IF NOT EXISTS source_cursors (
    -- Stored in the transaction that stores the messages before it.
    interface_id INTEGER PRIMARY KEY, -- whose source
    cursor       BLOB NOT NULL, -- the source's own words, at most 64 KiB
    changed_at   INTEGER NOT NULL -- when
) STRICT;
