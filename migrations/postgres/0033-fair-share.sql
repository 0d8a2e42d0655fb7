-- phase: expand
-- What accounts have used of the time of a pool's engines, by their shares; the row without an account is the floor of those that wait.
CREATE TABLE fair_share (
  pool text COLLATE "C" NOT NULL,
  account_id text COLLATE "C" NOT NULL,
  used_ms bigint NOT NULL,
  changed_at bigint NOT NULL,
  PRIMARY KEY (pool, account_id)
) WITH (fillfactor = 50);

-- What its share of the time is, in percent of an ordinary account's.
ALTER TABLE account_load ADD COLUMN share_percent integer NOT NULL DEFAULT 100;

-- How long its run was foreseen to take when it was claimed; null: nothing was charged for it.
ALTER TABLE job ADD COLUMN foreseen_ms bigint;
