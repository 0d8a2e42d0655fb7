-- What accounts have used of the time of a pool's engines, by their shares; the row without an account is the floor of those that wait.
CREATE TABLE fair_share (
  pool TEXT NOT NULL,
  account_id TEXT NOT NULL,
  used_ms INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (pool, account_id)
) STRICT, WITHOUT ROWID;

-- What its share of the time is, in percent of an ordinary account's.
ALTER TABLE account ADD COLUMN share_percent INTEGER NOT NULL DEFAULT 100;

-- How long its run was foreseen to take when it was claimed; null: nothing was charged for it.
ALTER TABLE job ADD COLUMN foreseen_ms INTEGER;
