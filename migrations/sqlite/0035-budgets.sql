-- How much accounts may spend in a period, with what was counted of it; and the tag that a caller gives what it does.
CREATE TABLE budget (
  account_id TEXT NOT NULL,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  owner TEXT NOT NULL,
  subject TEXT NOT NULL,
  value TEXT,
  limit_micros INTEGER NOT NULL,
  unit TEXT NOT NULL,
  style TEXT NOT NULL,
  time_zone TEXT NOT NULL,
  shares TEXT NOT NULL,
  is_hard INTEGER NOT NULL,
  raise_micros INTEGER,
  raise_until INTEGER,
  counts TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;
ALTER TABLE ledger_entry ADD COLUMN tag TEXT;
ALTER TABLE ledger_hold ADD COLUMN tag TEXT;
