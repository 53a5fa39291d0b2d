-- Does: makes the store: messages, what is to be done with them, what became of it.
-- Works through: nothing
-- Others: go on
-- Oldest binary: 1
--
-- Times are milliseconds since 1970 (UTC). Numbers of states and kinds are those of the model and are
-- never reused; a number from a newer binary is shown and left alone.
--
-- What grows with what is received is divided by retention tier, then by time: `tier` is a number of days,
-- `day` the day since 1970 (UTC, by the clock of the database) on which a message was stored. Both stand in
-- every key, and all that belongs to a message has the values of its message. The parts themselves are made
-- ahead of time by the program: a day each for the tier of one week, a week each for the others.

CREATE SEQUENCE IF NOT EXISTS message_ids;
COMMENT ON SEQUENCE message_ids IS 'Numbers of messages: they rise in the order of a batch, and commit in any order.';

CREATE TABLE IF NOT EXISTS store_name (
    id   smallint PRIMARY KEY CHECK (id = 1),
    name text NOT NULL
);
COMMENT ON TABLE store_name IS 'One row: what this store is called in the world.';
COMMENT ON COLUMN store_name.id IS 'Always 1.';
COMMENT ON COLUMN store_name.name IS 'Drawn once, kept for ever.';
INSERT INTO store_name (id, name) VALUES (1, substr(replace(gen_random_uuid()::text, '-', ''), 1, 16))
    ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS interfaces (
    id   integer PRIMARY KEY,
    name text NOT NULL UNIQUE
);
COMMENT ON TABLE interfaces IS 'Names of interfaces, also of those that are gone: a number is never given twice.';
COMMENT ON COLUMN interfaces.id IS 'Its number.';
COMMENT ON COLUMN interfaces.name IS 'As in the project.';

CREATE TABLE IF NOT EXISTS destinations (
    id           integer PRIMARY KEY,
    interface_id integer NOT NULL,
    name         text NOT NULL,
    UNIQUE (interface_id, name)
);
COMMENT ON TABLE destinations IS 'Names of destinations, also of those that are gone: a number is never given twice.';
COMMENT ON COLUMN destinations.id IS 'Its number.';
COMMENT ON COLUMN destinations.interface_id IS 'Whose destination it is.';
COMMENT ON COLUMN destinations.name IS 'As in the project.';

CREATE TABLE IF NOT EXISTS owners (
    group_id integer PRIMARY KEY,
    engine   text NOT NULL,
    epoch    bigint NOT NULL
);
COMMENT ON TABLE owners IS 'Which engine runs the deliveries of a group, or ran them last.';
COMMENT ON COLUMN owners.group_id IS 'The group; today the number of its interface.';
COMMENT ON COLUMN owners.engine IS 'A name the engine gave itself when it started.';
COMMENT ON COLUMN owners.epoch IS 'Rises with each new owner.';

CREATE TABLE IF NOT EXISTS last_write (
    engine  text PRIMARY KEY,
    mark    bigint NOT NULL,
    outcome bytea NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE last_write IS 'The newest transaction of each engine that writes.';
COMMENT ON COLUMN last_write.engine IS 'The name of the engine, from its settings: one session at a time has it.';
COMMENT ON COLUMN last_write.mark IS 'The engine''s name for the transaction.';
COMMENT ON COLUMN last_write.outcome IS 'What became of it, as in `mark.rs`; empty: no batch was ever written.';

CREATE TABLE IF NOT EXISTS messages (
    id           bigint NOT NULL,
    received_at  bigint NOT NULL,
    stored_at    bigint NOT NULL,
    body_bytes   bigint NOT NULL,
    occurred_at  bigint,
    origin_id    bigint,
    day          integer NOT NULL,
    interface_id integer NOT NULL,
    group_id     integer NOT NULL,
    tier         smallint NOT NULL,
    status       smallint NOT NULL,
    origin_kind  smallint,
    key          bytea,
    dedupe_key   bytea,
    attributes   bytea NOT NULL,
    PRIMARY KEY (id, tier, day)
) PARTITION BY LIST (tier);
CREATE INDEX IF NOT EXISTS messages_by_interface ON messages (interface_id, id);
CREATE INDEX IF NOT EXISTS messages_quarantined ON messages (id) WHERE status = 2;
COMMENT ON TABLE messages IS 'What was received, without its bytes.';
COMMENT ON COLUMN messages.id IS 'Its number.';
COMMENT ON COLUMN messages.received_at IS 'When its last byte arrived.';
COMMENT ON COLUMN messages.stored_at IS 'When its transaction was made, by the engine''s clock.';
COMMENT ON COLUMN messages.body_bytes IS 'Size as received, also of a duplicate, whose bytes are not kept.';
COMMENT ON COLUMN messages.occurred_at IS 'When it happened, as the message says.';
COMMENT ON COLUMN messages.origin_id IS 'The message it came from or repeats.';
COMMENT ON COLUMN messages.day IS 'The day it was stored, since 1970 (UTC), by the clock of the database.';
COMMENT ON COLUMN messages.interface_id IS 'Who received it.';
COMMENT ON COLUMN messages.group_id IS 'Who owns it.';
COMMENT ON COLUMN messages.tier IS 'Retention tier, in days.';
COMMENT ON COLUMN messages.status IS '0 pending, 1 finished, 2 quarantined, 3 duplicate.';
COMMENT ON COLUMN messages.origin_kind IS '1 route, 2 duplicate, 3 conflict, 4 edit.';
COMMENT ON COLUMN messages.key IS 'What decides its lane; UTF-8, as bytes because it may hold a zero.';
COMMENT ON COLUMN messages.dedupe_key IS 'What a duplicate is recognised by; UTF-8, as bytes.';
COMMENT ON COLUMN messages.attributes IS 'For each text its length (two bytes, little endian) and its bytes.';

CREATE TABLE IF NOT EXISTS bodies (
    message_id bigint NOT NULL,
    number     integer NOT NULL,
    day        integer NOT NULL,
    tier       smallint NOT NULL,
    bytes      bytea NOT NULL,
    PRIMARY KEY (message_id, number, tier, day)
) PARTITION BY LIST (tier);
COMMENT ON TABLE bodies IS 'The bytes of messages, in pieces of at most 1 MiB.';
COMMENT ON COLUMN bodies.message_id IS 'Whose.';
COMMENT ON COLUMN bodies.number IS 'Which piece, from 0.';
COMMENT ON COLUMN bodies.day IS 'As its message.';
COMMENT ON COLUMN bodies.tier IS 'As its message.';
COMMENT ON COLUMN bodies.bytes IS 'As received.';

CREATE TABLE IF NOT EXISTS deliveries (
    message_id     bigint NOT NULL,
    due_at         bigint,
    changed_at     bigint NOT NULL,
    body_bytes     bigint NOT NULL,
    destination_id integer NOT NULL,
    day            integer NOT NULL,
    round          integer NOT NULL,
    attempts       integer NOT NULL,
    tier           smallint NOT NULL,
    lane           smallint NOT NULL,
    state          smallint NOT NULL,
    reason         text,
    PRIMARY KEY (message_id, destination_id, tier, day)
) PARTITION BY LIST (tier);
-- What is pending is in one of the first two: what waits for its time outside the order must not stand in
-- the way of what does not. They are small, since they hold nothing that is done.
CREATE INDEX IF NOT EXISTS deliveries_queue ON deliveries (destination_id, lane, message_id)
    WHERE state = 0 AND (lane < 1024 OR due_at IS NULL);
CREATE INDEX IF NOT EXISTS deliveries_due ON deliveries (destination_id, due_at, message_id)
    WHERE state = 0 AND lane >= 1024 AND due_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS deliveries_held ON deliveries (destination_id, lane, message_id)
    WHERE state = 3;
COMMENT ON TABLE deliveries IS 'The duty to bring a message to a destination.';
COMMENT ON COLUMN deliveries.message_id IS 'What.';
COMMENT ON COLUMN deliveries.due_at IS 'Not before; only while pending.';
COMMENT ON COLUMN deliveries.changed_at IS 'When it was stored, tried or finished.';
COMMENT ON COLUMN deliveries.body_bytes IS 'Size of the message, so that a page of a queue needs no other table.';
COMMENT ON COLUMN deliveries.destination_id IS 'Where to.';
COMMENT ON COLUMN deliveries.day IS 'As its message.';
COMMENT ON COLUMN deliveries.round IS 'How often an operator started it anew.';
COMMENT ON COLUMN deliveries.attempts IS 'Tries in this round.';
COMMENT ON COLUMN deliveries.tier IS 'As its message.';
COMMENT ON COLUMN deliveries.lane IS '0 to 1,023 ordered, 1,024 by itself.';
COMMENT ON COLUMN deliveries.state IS '0 pending, 1 sent, 2 filtered, 3 quarantined, 4 dismissed.';
COMMENT ON COLUMN deliveries.reason IS 'Why it waits, was filtered or quarantined; the peer''s answer if sent.';

CREATE TABLE IF NOT EXISTS attempts (
    message_id     bigint NOT NULL,
    started_at     bigint NOT NULL,
    took_ms        bigint NOT NULL,
    destination_id integer NOT NULL,
    round          integer NOT NULL,
    number         integer NOT NULL,
    day            integer NOT NULL,
    tier           smallint NOT NULL,
    outcome        smallint NOT NULL,
    text           text NOT NULL,
    PRIMARY KEY (message_id, destination_id, round, number, tier, day)
) PARTITION BY LIST (tier);
COMMENT ON TABLE attempts IS 'Every failed attempt of a delivery, and the successful one that followed failures.';
COMMENT ON COLUMN attempts.message_id IS 'Which delivery: what.';
COMMENT ON COLUMN attempts.started_at IS 'When.';
COMMENT ON COLUMN attempts.took_ms IS 'How long.';
COMMENT ON COLUMN attempts.destination_id IS 'Which delivery: where to.';
COMMENT ON COLUMN attempts.round IS 'In which round.';
COMMENT ON COLUMN attempts.number IS 'Which of the round, from 1.';
COMMENT ON COLUMN attempts.day IS 'As its message.';
COMMENT ON COLUMN attempts.tier IS 'As its message.';
COMMENT ON COLUMN attempts.outcome IS '0 retry, 1 sent, 2 filtered, 3 quarantined.';
COMMENT ON COLUMN attempts.text IS 'What was said.';

CREATE TABLE IF NOT EXISTS messages_t7 PARTITION OF messages FOR VALUES IN (7) PARTITION BY RANGE (day);
CREATE TABLE IF NOT EXISTS messages_t21 PARTITION OF messages FOR VALUES IN (21) PARTITION BY RANGE (day);
CREATE TABLE IF NOT EXISTS messages_t49 PARTITION OF messages FOR VALUES IN (49) PARTITION BY RANGE (day);
CREATE TABLE IF NOT EXISTS bodies_t7 PARTITION OF bodies FOR VALUES IN (7) PARTITION BY RANGE (day);
CREATE TABLE IF NOT EXISTS bodies_t21 PARTITION OF bodies FOR VALUES IN (21) PARTITION BY RANGE (day);
CREATE TABLE IF NOT EXISTS bodies_t49 PARTITION OF bodies FOR VALUES IN (49) PARTITION BY RANGE (day);
CREATE TABLE IF NOT EXISTS deliveries_t7 PARTITION OF deliveries FOR VALUES IN (7) PARTITION BY RANGE (day);
CREATE TABLE IF NOT EXISTS deliveries_t21 PARTITION OF deliveries FOR VALUES IN (21) PARTITION BY RANGE (day);
CREATE TABLE IF NOT EXISTS deliveries_t49 PARTITION OF deliveries FOR VALUES IN (49) PARTITION BY RANGE (day);
CREATE TABLE IF NOT EXISTS attempts_t7 PARTITION OF attempts FOR VALUES IN (7) PARTITION BY RANGE (day);
CREATE TABLE IF NOT EXISTS attempts_t21 PARTITION OF attempts FOR VALUES IN (21) PARTITION BY RANGE (day);
CREATE TABLE IF NOT EXISTS attempts_t49 PARTITION OF attempts FOR VALUES IN (49) PARTITION BY RANGE (day);

CREATE TABLE IF NOT EXISTS queue_floors (
    destination_id integer PRIMARY KEY,
    message_id     bigint NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE queue_floors IS 'Below which message nothing is in the queue of a destination, so that reading it begins behind what was delivered.';
COMMENT ON COLUMN queue_floors.destination_id IS 'Whose queue.';
COMMENT ON COLUMN queue_floors.message_id IS 'The lowest number that may be in it.';

CREATE TABLE IF NOT EXISTS dedupe (
    message_id   bigint NOT NULL,
    expires_at   bigint NOT NULL,
    interface_id integer NOT NULL,
    key_digest   bytea NOT NULL,
    body_digest  bytea NOT NULL,
    PRIMARY KEY (interface_id, key_digest)
);
CREATE INDEX IF NOT EXISTS dedupe_expiry ON dedupe (expires_at);
COMMENT ON TABLE dedupe IS 'Keys by which duplicates are recognised. The newest message of a key counts.';
COMMENT ON COLUMN dedupe.message_id IS 'Which message has it.';
COMMENT ON COLUMN dedupe.expires_at IS 'Until then.';
COMMENT ON COLUMN dedupe.interface_id IS 'Within which interface.';
COMMENT ON COLUMN dedupe.key_digest IS 'First 16 bytes of the SHA-256 of the key as the source gave it.';
COMMENT ON COLUMN dedupe.body_digest IS 'First 16 bytes of the body''s SHA-256.';

CREATE TABLE IF NOT EXISTS message_actions (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    message_id     bigint NOT NULL,
    at             bigint NOT NULL,
    destination_id integer,
    action         smallint NOT NULL,
    author         text NOT NULL,
    reason         text NOT NULL
);
CREATE INDEX IF NOT EXISTS message_actions_by_message ON message_actions (message_id, id);
COMMENT ON TABLE message_actions IS 'What operators did to messages.';
COMMENT ON COLUMN message_actions.id IS 'In order.';
COMMENT ON COLUMN message_actions.message_id IS 'To which message.';
COMMENT ON COLUMN message_actions.at IS 'When.';
COMMENT ON COLUMN message_actions.destination_id IS 'Only there; none: wherever it fitted.';
COMMENT ON COLUMN message_actions.action IS '1 resend, 2 dismiss, 3 retry, 4 edit.';
COMMENT ON COLUMN message_actions.author IS 'Who.';
COMMENT ON COLUMN message_actions.reason IS 'Why.';

CREATE TABLE IF NOT EXISTS suspects (
    message_id     bigint NOT NULL,
    tries          bigint NOT NULL,
    destination_id integer NOT NULL,
    PRIMARY KEY (message_id, destination_id)
);
COMMENT ON TABLE suspects IS 'Deliveries that were in hand when the process died.';
COMMENT ON COLUMN suspects.message_id IS 'Which delivery: what.';
COMMENT ON COLUMN suspects.tries IS 'How often it was tried by itself since.';
COMMENT ON COLUMN suspects.destination_id IS 'Which delivery: where to.';
