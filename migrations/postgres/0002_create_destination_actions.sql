-- Does: keeps what operators did to destinations as a whole. The newest row of a destination counts: if it
--   is a pause, nothing new is sent there.
-- Works through: nothing
-- Others: go on
-- Oldest binary: 2

CREATE TABLE IF NOT EXISTS destination_actions (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at             bigint NOT NULL,
    destination_id integer NOT NULL,
    action         smallint NOT NULL,
    author         text NOT NULL,
    reason         text NOT NULL
);
CREATE INDEX IF NOT EXISTS destination_actions_by_destination ON destination_actions (destination_id, id);
COMMENT ON TABLE destination_actions IS 'The newest of each destination; older ones are forgotten.';
COMMENT ON COLUMN destination_actions.id IS 'In order.';
COMMENT ON COLUMN destination_actions.at IS 'When.';
COMMENT ON COLUMN destination_actions.destination_id IS 'To which destination.';
COMMENT ON COLUMN destination_actions.action IS '1 pause, 2 resume.';
COMMENT ON COLUMN destination_actions.author IS 'Who.';
COMMENT ON COLUMN destination_actions.reason IS 'Why.';
