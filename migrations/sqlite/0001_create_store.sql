-- Does: makes the store: messages, what is to be done with them, what became of it.
-- Works through: nothing
-- Oldest binary: 1
--
-- Times are milliseconds since 1970 (UTC). Numbers of states and kinds are those of the model
-- and are never reused; a number from a newer binary is shown and left alone.
-- The comments inside the parentheses stay in the database (`.schema` shows them).

CREATE TABLE IF NOT EXISTS interfaces (
    -- Names of interfaces, also of those that are gone: a number is never given twice.
    id   INTEGER PRIMARY KEY, -- its number
    name TEXT NOT NULL UNIQUE -- as in the project
) STRICT;

CREATE TABLE IF NOT EXISTS destinations (
    -- Names of destinations, also of those that are gone: a number is never given twice.
    id           INTEGER PRIMARY KEY, -- its number
    interface_id INTEGER NOT NULL, -- whose destination it is
    name         TEXT NOT NULL, -- as in the project
    UNIQUE (interface_id, name)
) STRICT;

CREATE TABLE IF NOT EXISTS owners (
    -- Which engine runs the deliveries of a group, or ran them last.
    group_id INTEGER PRIMARY KEY, -- the group; today the number of its interface
    engine   TEXT NOT NULL, -- a name the engine gave itself when it started
    epoch    INTEGER NOT NULL -- rises with each new owner
) STRICT;

CREATE TABLE IF NOT EXISTS last_write (
    -- One row: the newest transaction, and what the next one has to know.
    id         INTEGER PRIMARY KEY CHECK (id = 1), -- always 1
    message_id INTEGER NOT NULL, -- the highest number given to a message
    mark       INTEGER NOT NULL, -- the engine's name for the transaction
    outcome    BLOB NOT NULL, -- what became of it, as in `mark.rs`
    in_use     INTEGER NOT NULL, -- 1 from the engine's start to its orderly end
    store      TEXT NOT NULL DEFAULT (lower(hex(randomblob(8)))) -- the store's own name, drawn once
) STRICT;

CREATE TABLE IF NOT EXISTS messages (
    -- What was received, without its bytes.
    id           INTEGER PRIMARY KEY, -- rises in commit order
    interface_id INTEGER NOT NULL, -- who received it
    status       INTEGER NOT NULL, -- 0 pending, 1 finished, 2 quarantined, 3 duplicate
    stored_at    INTEGER NOT NULL, -- when its transaction was made
    body_bytes   INTEGER NOT NULL, -- size as received, also of a duplicate, whose bytes are not kept
    body_id      INTEGER, -- its bytes are in body_chunks under this number; none: in bodies
    group_id     INTEGER NOT NULL, -- who owns it
    tier         INTEGER NOT NULL, -- retention tier
    received_at  INTEGER NOT NULL, -- when its last byte arrived
    occurred_at  INTEGER, -- when it happened, as the message says
    key          TEXT, -- what decides its lane
    dedupe_key   TEXT, -- what a duplicate is recognised by
    attributes   BLOB NOT NULL, -- for each text its length (two bytes, little endian) and its bytes
    origin_id    INTEGER, -- the message it came from or repeats
    origin_kind  INTEGER -- 1 route, 2 duplicate, 3 conflict
) STRICT;
CREATE INDEX IF NOT EXISTS messages_by_interface ON messages (interface_id);
CREATE INDEX IF NOT EXISTS messages_quarantined ON messages (status) WHERE status = 2;
CREATE INDEX IF NOT EXISTS messages_large ON messages (body_id) WHERE body_id IS NOT NULL;

CREATE TABLE IF NOT EXISTS bodies (
    -- The bytes of messages up to 1 MiB.
    message_id INTEGER PRIMARY KEY, -- whose
    body       BLOB NOT NULL -- as received
) STRICT;

CREATE TABLE IF NOT EXISTS body_chunks (
    -- The bytes of larger messages. Written ahead of their message, whose body_id makes them valid;
    -- what no message names is removed when the store is opened.
    body_id INTEGER NOT NULL, -- which body
    number  INTEGER NOT NULL, -- from 0
    bytes   BLOB NOT NULL, -- at most 1 MiB
    PRIMARY KEY (body_id, number)
) STRICT;

CREATE TABLE IF NOT EXISTS deliveries (
    -- The duty to bring a message to a destination.
    message_id     INTEGER NOT NULL, -- what
    destination_id INTEGER NOT NULL, -- where to
    lane           INTEGER NOT NULL, -- 0 to 1,023 ordered, 1,024 by itself
    state          INTEGER NOT NULL, -- 0 pending, 1 sent, 2 filtered, 3 quarantined, 4 dismissed
    round          INTEGER NOT NULL, -- how often an operator started it anew
    attempts       INTEGER NOT NULL, -- tries in this round
    due_at         INTEGER, -- not before; only while pending
    changed_at     INTEGER NOT NULL, -- when it was stored, tried or finished
    reason         TEXT, -- why it waits, was filtered or quarantined; the peer's answer if sent
    PRIMARY KEY (message_id, destination_id)
) STRICT, WITHOUT ROWID;
-- What is pending is in one of the first two: what waits for its time outside the order must not
-- stand in the way of what does not. The columns behind the message are there so that a page of a
-- queue is read from the index alone.
CREATE INDEX IF NOT EXISTS deliveries_queue
    ON deliveries (destination_id, lane, message_id, round, attempts, due_at, state)
    WHERE state = 0 AND (lane < 1024 OR due_at IS NULL);
CREATE INDEX IF NOT EXISTS deliveries_due
    ON deliveries (destination_id, due_at, message_id, round, attempts, lane, state)
    WHERE state = 0 AND lane >= 1024 AND due_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS deliveries_held
    ON deliveries (destination_id, lane, message_id, state)
    WHERE state = 3;

CREATE TABLE IF NOT EXISTS attempts (
    -- Every failed attempt of a delivery, and the successful one that followed failures.
    message_id     INTEGER NOT NULL, -- which delivery: what
    destination_id INTEGER NOT NULL, -- which delivery: where to
    round          INTEGER NOT NULL, -- in which round
    number         INTEGER NOT NULL, -- which of the round, from 1
    started_at     INTEGER NOT NULL, -- when
    took_ms        INTEGER NOT NULL, -- how long
    outcome        INTEGER NOT NULL, -- 0 retry, 1 sent, 2 filtered, 3 quarantined
    text           TEXT NOT NULL, -- what was said
    PRIMARY KEY (message_id, destination_id, round, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS dedupe (
    -- Keys by which duplicates are recognised. The newest message of a key counts.
    interface_id INTEGER NOT NULL, -- within which interface
    key          TEXT NOT NULL, -- as the source gave it
    message_id   INTEGER NOT NULL, -- which message has it
    body_digest  BLOB NOT NULL, -- first 16 bytes of the body's SHA-256
    expires_at   INTEGER NOT NULL, -- until then
    PRIMARY KEY (interface_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS dedupe_expiry ON dedupe (expires_at);

CREATE TABLE IF NOT EXISTS message_actions (
    -- What operators did to messages.
    id             INTEGER PRIMARY KEY, -- in order
    message_id     INTEGER NOT NULL, -- to which message
    at             INTEGER NOT NULL, -- when
    destination_id INTEGER, -- only there; none: wherever it fitted
    action         INTEGER NOT NULL, -- 1 resend, 2 dismiss
    author         TEXT NOT NULL, -- who
    reason         TEXT NOT NULL -- why
) STRICT;
CREATE INDEX IF NOT EXISTS message_actions_by_message ON message_actions (message_id);

CREATE TABLE IF NOT EXISTS suspects (
    -- Deliveries that were in hand when the process died.
    message_id     INTEGER NOT NULL, -- which delivery: what
    destination_id INTEGER NOT NULL, -- which delivery: where to
    tries          INTEGER NOT NULL, -- how often it was tried by itself since
    PRIMARY KEY (message_id, destination_id)
) STRICT, WITHOUT ROWID;
