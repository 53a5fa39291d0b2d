-- Does: notes which start of the server numbers of messages were given by.
-- Works through: nothing
-- Others: go on
-- Oldest binary: 11

CREATE TABLE IF NOT EXISTS server (
    one        boolean PRIMARY KEY DEFAULT true CHECK (one),
    started_at timestamptz NOT NULL
);
COMMENT ON TABLE server IS 'The server that gives numbers to messages: one row.';
COMMENT ON COLUMN server.one IS 'Always true, so that there is one row.';
COMMENT ON COLUMN server.started_at IS 'When it began, by its own clock. Another start may know less: numbers are passed over then.';

INSERT INTO server (started_at) VALUES (pg_postmaster_start_time()) ON CONFLICT DO NOTHING;
