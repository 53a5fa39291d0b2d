-- Does: notes how each tenure began, so that the next owner knows when this one ends no better.
-- Works through: owners (definition)
-- Others: go on
-- Oldest binary: 11
--
-- Its columns have constant defaults: no row is written anew.

ALTER TABLE owners ADD COLUMN IF NOT EXISTS unclean boolean NOT NULL DEFAULT false;
ALTER TABLE owners ADD COLUMN IF NOT EXISTS overlapped_at timestamptz;
COMMENT ON COLUMN owners.unclean IS 'Whether the process of an owner before may have ended with something in hand that nobody has tried since.';
COMMENT ON COLUMN owners.overlapped_at IS 'When an owner was displaced that may have been sending, by the server''s clock; none: nobody was.';
