-- Does: keeps small values of plugins for a destination.
-- Works through: nothing
-- Oldest binary: 8

CREATE TABLE IF NOT EXISTS plugin_state (
    -- Stored in the transaction that stores the outcome of the message they were written for.
    destination_id INTEGER NOT NULL, -- whose
    space          TEXT NOT NULL,    -- which use of a plugin there
    key            TEXT NOT NULL,    -- the plugin's own, at most 256 bytes
    value          BLOB NOT NULL,    -- at most 64 KiB
    PRIMARY KEY (destination_id, space, key)
) STRICT, WITHOUT ROWID;
