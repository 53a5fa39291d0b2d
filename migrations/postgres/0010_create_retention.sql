-- Does: keeps how long messages stay. Interfaces that are there already keep everything for the longest
--   time until a project's shorter one is confirmed.
-- Works through: interfaces (read), messages (definition), bodies (definition), deliveries (definition),
--   attempts (definition), outputs (definition)
-- Others: go on
-- Oldest binary: 10
--
-- Tier 0 is that of what is needed for longer than its tier lasts.

CREATE TABLE IF NOT EXISTS retention (
    interface_id       integer PRIMARY KEY,
    change_since       bigint,
    waiting_since      bigint,
    confirmed_at       bigint,
    tier               smallint NOT NULL,
    quarantined        smallint NOT NULL,
    change_tier        smallint,
    change_quarantined smallint,
    waiting_tier       smallint,
    waiting_quarantined smallint,
    waiting_confirmed  boolean,
    confirmed_by       text,
    confirmed_why      text
);
COMMENT ON TABLE retention IS 'How long each interface that was ever registered keeps its messages.';
COMMENT ON COLUMN retention.interface_id IS 'Whose.';
COMMENT ON COLUMN retention.change_since IS 'When the change that runs began.';
COMMENT ON COLUMN retention.waiting_since IS 'Since when that which waits does so.';
COMMENT ON COLUMN retention.confirmed_at IS 'The last confirmation: when.';
COMMENT ON COLUMN retention.tier IS 'Days that finished messages are kept.';
COMMENT ON COLUMN retention.quarantined IS '0 they stay, 1 they go with the rest.';
COMMENT ON COLUMN retention.change_tier IS 'The change that runs: its tier; none: there is none.';
COMMENT ON COLUMN retention.change_quarantined IS 'And what it wants of quarantined messages.';
COMMENT ON COLUMN retention.waiting_tier IS 'What is configured and waits: its tier; none: nothing waits.';
COMMENT ON COLUMN retention.waiting_quarantined IS 'And what it wants of quarantined messages.';
COMMENT ON COLUMN retention.waiting_confirmed IS 'It was confirmed and waits for the change that runs.';
COMMENT ON COLUMN retention.confirmed_by IS 'The last confirmation: who.';
COMMENT ON COLUMN retention.confirmed_why IS 'The last confirmation: why.';
INSERT INTO retention (interface_id, tier, quarantined) SELECT id, 49, 0 FROM interfaces ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS retention_age (
    id smallint PRIMARY KEY CHECK (id = 1),
    at bigint NOT NULL
);
COMMENT ON TABLE retention_age IS 'One row: how far messages have grown old.';
COMMENT ON COLUMN retention_age.id IS 'Always 1.';
COMMENT ON COLUMN retention_age.at IS 'The time up to which they did, as the last engine reckoned.';

CREATE TABLE IF NOT EXISTS sealed_periods (
    tier     smallint NOT NULL,
    from_day integer NOT NULL,
    to_day   integer NOT NULL,
    going    boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tier, from_day)
);
COMMENT ON TABLE sealed_periods IS 'Periods that are being removed as a whole: what is done in them stays done, and nothing comes in.';
COMMENT ON COLUMN sealed_periods.tier IS 'Of which tier.';
COMMENT ON COLUMN sealed_periods.from_day IS 'Its first day, since 1970 (UTC).';
COMMENT ON COLUMN sealed_periods.to_day IS 'The first day that is not its.';
COMMENT ON COLUMN sealed_periods.going IS 'Nothing in it is needed, and its removal has begun: it is ended in any case.';

CREATE TABLE IF NOT EXISTS messages_t0 PARTITION OF messages FOR VALUES IN (0) PARTITION BY RANGE (day);
CREATE TABLE IF NOT EXISTS bodies_t0 PARTITION OF bodies FOR VALUES IN (0) PARTITION BY RANGE (day);
CREATE TABLE IF NOT EXISTS deliveries_t0 PARTITION OF deliveries FOR VALUES IN (0) PARTITION BY RANGE (day);
CREATE TABLE IF NOT EXISTS attempts_t0 PARTITION OF attempts FOR VALUES IN (0) PARTITION BY RANGE (day);
CREATE TABLE IF NOT EXISTS outputs_t0 PARTITION OF outputs FOR VALUES IN (0) PARTITION BY RANGE (day);
