-- Does: keeps how long messages stay. Interfaces that are there already keep everything for the longest
--   time until a project's shorter one is confirmed.
-- Works through: interfaces (read)
-- Oldest binary: 10

CREATE TABLE IF NOT EXISTS retention (
    -- Of every interface that was ever registered.
    interface_id      INTEGER PRIMARY KEY, -- whose
    tier              INTEGER NOT NULL, -- days that finished messages are kept
    quarantined       INTEGER NOT NULL, -- 0 they stay, 1 they go with the rest
    change_tier       INTEGER, -- the change that runs: its tier; none: there is none
    change_quarantined INTEGER, -- and what it wants of quarantined messages
    change_since      INTEGER, -- when it began
    waiting_tier      INTEGER, -- what is configured and waits: its tier; none: nothing waits
    waiting_quarantined INTEGER, -- and what it wants of quarantined messages
    waiting_since     INTEGER, -- since when
    waiting_confirmed INTEGER, -- 1: it was confirmed and waits for the change that runs
    confirmed_at      INTEGER, -- the last confirmation: when
    confirmed_by      TEXT, -- who
    confirmed_why     TEXT -- why
) STRICT;
INSERT OR IGNORE INTO retention (interface_id, tier, quarantined) SELECT id, 49, 0 FROM interfaces;

CREATE TABLE IF NOT EXISTS retention_age (
    -- One row: how far messages have grown old.
    id INTEGER PRIMARY KEY CHECK (id = 1), -- always 1
    at INTEGER NOT NULL -- the time up to which they did, as the last engine reckoned
) STRICT;
