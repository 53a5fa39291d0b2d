-- Does: keeps which engines use the store, and since when each group has its owner.
-- Works through: owners (index)
-- Others: go on
-- Oldest binary: 11
--
-- Its columns have constant defaults: no row is written anew.

CREATE TABLE IF NOT EXISTS engines (
    engine     text PRIMARY KEY,
    started_at bigint NOT NULL,
    lock_key   bigint NOT NULL,
    epoch      bigint NOT NULL,
    owns       boolean NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE engines IS 'Engines that use the store, or did: one is alive while a session holds its advisory lock.';
COMMENT ON COLUMN engines.engine IS 'The name of the engine, from its settings.';
COMMENT ON COLUMN engines.started_at IS 'When it took its lock, by its clock.';
COMMENT ON COLUMN engines.lock_key IS 'The number of its advisory lock.';
COMMENT ON COLUMN engines.epoch IS 'Its newest epoch; 0: it never owned anything.';
COMMENT ON COLUMN engines.owns IS 'Whether results of that epoch count: false once it gave back what it owned or another took it over.';

ALTER TABLE owners ADD COLUMN IF NOT EXISTS since bigint NOT NULL DEFAULT 0;
ALTER TABLE owners ADD COLUMN IF NOT EXISTS strangers bigint NOT NULL DEFAULT 0;
ALTER TABLE owners ADD COLUMN IF NOT EXISTS clean boolean NOT NULL DEFAULT false;
ALTER TABLE owners ADD COLUMN IF NOT EXISTS process text NOT NULL DEFAULT '';
CREATE INDEX IF NOT EXISTS owners_by_engine ON owners (engine, epoch);
COMMENT ON COLUMN owners.engine IS 'The name of the engine; empty: nobody ever owned it.';
COMMENT ON COLUMN owners.since IS 'Since when, by the clock of that engine.';
COMMENT ON COLUMN owners.strangers IS 'How many transactions of others stored messages for its owner. Never falls.';
COMMENT ON COLUMN owners.clean IS 'True once it was given back in order: nobody owns it.';
COMMENT ON COLUMN owners.process IS 'Which process: boot of the machine, namespace, number and start, so that its end can be seen. Empty: unknown.';
