-- Does: keeps what senders were given, where a destination asks for it.
-- Works through: nothing
-- Oldest binary: 9

CREATE TABLE IF NOT EXISTS outputs (
    -- The newest output of a message for a destination.
    message_id     INTEGER NOT NULL, -- of which message
    destination_id INTEGER NOT NULL, -- for which destination
    round          INTEGER NOT NULL, -- the round it was made in
    attempt        INTEGER NOT NULL, -- the attempt it was made for
    saved_at       INTEGER NOT NULL, -- when it was stored
    key            TEXT, -- as the transforms left it
    attributes     BLOB NOT NULL, -- as those of messages
    kind           INTEGER NOT NULL, -- 0: the message's own bytes; 1: kept in `body`; 2: too large to keep; 3: the store had no room
    body_bytes     INTEGER NOT NULL, -- size of the body; 0 where it is the message's own
    body           BLOB, -- what is kept
    PRIMARY KEY (message_id, destination_id)
) STRICT;
