-- How far sources that look for messages have come.

CREATE TABLE IF NOT EXISTS source_cursors (
    -- Stored in the transaction that stores the messages before it.
    interface_id INTEGER PRIMARY KEY, -- whose source
    cursor       BLOB NOT NULL, -- the source's own words, at most 64 KiB
    changed_at   INTEGER NOT NULL -- when
) STRICT;
