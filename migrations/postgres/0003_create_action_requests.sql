-- Does: keeps requests of operators that were carried out, so that one that is made again is not done
--   again.
-- Works through: nothing
-- Others: go on
-- Oldest binary: 3

CREATE TABLE IF NOT EXISTS action_requests (
    message_id     bigint NOT NULL,
    destination_id integer NOT NULL,
    request        text NOT NULL,
    PRIMARY KEY (message_id, request, destination_id)
);
COMMENT ON TABLE action_requests IS 'Which request did something to which delivery.';
COMMENT ON COLUMN action_requests.message_id IS 'To which message.';
COMMENT ON COLUMN action_requests.destination_id IS 'Only there; 0: wherever it fitted.';
COMMENT ON COLUMN action_requests.request IS 'As whoever asked named it.';
