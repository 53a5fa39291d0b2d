-- Does: keeps what senders were given, where a destination asks for it.
-- Works through: nothing
-- Others: go on
-- Oldest binary: 9

CREATE TABLE IF NOT EXISTS outputs (
    message_id     bigint NOT NULL,
    saved_at       bigint NOT NULL,
    body_bytes     bigint NOT NULL,
    destination_id integer NOT NULL,
    round          integer NOT NULL,
    attempt        integer NOT NULL,
    day            integer NOT NULL,
    tier           smallint NOT NULL,
    kind           smallint NOT NULL,
    key            bytea,
    attributes     bytea NOT NULL,
    body           bytea,
    PRIMARY KEY (message_id, destination_id, tier, day)
) PARTITION BY LIST (tier);
COMMENT ON TABLE outputs IS 'The newest output of a message for a destination.';
COMMENT ON COLUMN outputs.message_id IS 'Of which message.';
COMMENT ON COLUMN outputs.saved_at IS 'When it was stored.';
COMMENT ON COLUMN outputs.body_bytes IS 'Size of the body; 0 where it is the message''s own.';
COMMENT ON COLUMN outputs.destination_id IS 'For which destination.';
COMMENT ON COLUMN outputs.round IS 'The round it was made in.';
COMMENT ON COLUMN outputs.attempt IS 'The attempt it was made for.';
COMMENT ON COLUMN outputs.day IS 'As its message.';
COMMENT ON COLUMN outputs.tier IS 'As its message.';
COMMENT ON COLUMN outputs.kind IS '0: the message''s own bytes; 1: kept in `body`; 2: too large to keep; 3: the store had no room.';
COMMENT ON COLUMN outputs.key IS 'As the transforms left it; UTF-8, as bytes because it may hold a zero.';
COMMENT ON COLUMN outputs.attributes IS 'As those of messages.';
COMMENT ON COLUMN outputs.body IS 'What is kept.';

CREATE TABLE IF NOT EXISTS outputs_t7 PARTITION OF outputs FOR VALUES IN (7) PARTITION BY RANGE (day);
CREATE TABLE IF NOT EXISTS outputs_t21 PARTITION OF outputs FOR VALUES IN (21) PARTITION BY RANGE (day);
CREATE TABLE IF NOT EXISTS outputs_t49 PARTITION OF outputs FOR VALUES IN (49) PARTITION BY RANGE (day);
