-- Does: keeps requests of operators that were carried out, so that one that is made again is not done
--   again.
-- Works through: nothing
-- Oldest binary: 3

CREATE TABLE IF NOT EXISTS action_requests (
    -- Which request did something to which delivery.
    message_id     INTEGER NOT NULL, -- to which message
    request        TEXT NOT NULL, -- as whoever asked named it
    destination_id INTEGER NOT NULL, -- only there; 0: wherever it fitted
    PRIMARY KEY (message_id, request, destination_id)
) STRICT, WITHOUT ROWID;
