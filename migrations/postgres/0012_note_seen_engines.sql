-- Does: notes on which day each engine was last seen, so that those that are gone for long are forgotten.
-- Works through: last_write (definition)
-- Others: go on
-- Oldest binary: 11

ALTER TABLE last_write ADD COLUMN IF NOT EXISTS seen_day integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN last_write.seen_day IS 'The last day its name was seen to be in use, since 1970 (UTC), by the clock of the database; 0: nobody looked yet.';
