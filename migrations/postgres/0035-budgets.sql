-- phase: expand
-- How much accounts may spend in a period, with what was counted of it; and the tag that a caller gives what it does.
CREATE TABLE budget (
  account_id text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  name text NOT NULL,
  owner text NOT NULL,
  subject text NOT NULL,
  value text,
  limit_micros bigint NOT NULL,
  unit text NOT NULL,
  style text NOT NULL,
  time_zone text NOT NULL,
  shares text NOT NULL,
  is_hard smallint NOT NULL,
  raise_micros bigint,
  raise_until bigint,
  counts text NOT NULL,
  created_at bigint NOT NULL,
  changed_at bigint NOT NULL,
  PRIMARY KEY (account_id, id)
);
ALTER TABLE ledger_entry ADD COLUMN tag text;
ALTER TABLE ledger_hold ADD COLUMN tag text;
