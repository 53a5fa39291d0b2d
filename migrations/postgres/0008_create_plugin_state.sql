-- Does: keeps small values of plugins for a destination.
-- Works through: nothing
-- Others: go on
-- Oldest binary: 8

CREATE TABLE IF NOT EXISTS plugin_state (
    destination_id integer NOT NULL,
    space          text COLLATE "C" NOT NULL,
    key            text COLLATE "C" NOT NULL,
    value          bytea NOT NULL,
    PRIMARY KEY (destination_id, space, key)
);
COMMENT ON TABLE plugin_state IS 'Stored in the transaction that stores the outcome of the message they were written for.';
COMMENT ON COLUMN plugin_state.destination_id IS 'Whose.';
COMMENT ON COLUMN plugin_state.space IS 'Which use of a plugin there.';
COMMENT ON COLUMN plugin_state.key IS 'The plugin''s own, at most 256 bytes, in the order of bytes.';
COMMENT ON COLUMN plugin_state.value IS 'At most 64 KiB.';
