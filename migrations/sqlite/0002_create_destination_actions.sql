-- Does: keeps what operators did to destinations as a whole. The newest row of a destination counts: if it
--   is a pause, nothing new is sent there.
-- Works through: nothing
-- Oldest binary: 2

CREATE TABLE IF NOT EXISTS destination_actions (
    -- The newest of each destination; older ones are forgotten.
    id             INTEGER PRIMARY KEY, -- in order
    destination_id INTEGER NOT NULL, -- to which destination
    at             INTEGER NOT NULL, -- when
    action         INTEGER NOT NULL, -- 1 pause, 2 resume
    author         TEXT NOT NULL, -- who
    reason         TEXT NOT NULL -- why
) STRICT;
CREATE INDEX IF NOT EXISTS destination_actions_by_destination ON destination_actions (destination_id);
