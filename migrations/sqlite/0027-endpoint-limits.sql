-- Bounds on the jobs of a scope: what was counted in it, and its jobs that are not known to have ended. Both are written by the
-- transaction that records a job; jobs without bounds have no rows here.
CREATE TABLE run_scope (
  account_id TEXT NOT NULL,
  scope TEXT NOT NULL,
  -- JSON: runs and micro-dollars by period.
  tallies TEXT NOT NULL,
  -- How many tickets it has, and from how many on somebody looks which of their jobs have ended.
  open INTEGER NOT NULL,
  look_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, scope)
) STRICT, WITHOUT ROWID;

CREATE TABLE run_ticket (
  account_id TEXT NOT NULL,
  scope TEXT NOT NULL,
  job_id TEXT NOT NULL,
  -- In which periods it counts.
  counted_at INTEGER NOT NULL,
  -- What was held for it.
  micros INTEGER NOT NULL,
  -- 1: the job was taken back as if it had never been submitted.
  is_withdrawn INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, scope, job_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_ticket_job ON run_ticket (job_id);

-- The endpoints that a key may call and see, as JSON; null: all.
ALTER TABLE api_key ADD COLUMN endpoints TEXT;

-- What was charged for runs of endpoints; null: of none, or written before this was noted.
ALTER TABLE ledger_hold ADD COLUMN endpoint TEXT;
ALTER TABLE ledger_hold ADD COLUMN endpoint_version INTEGER;
-- 1: a price that the caller of an endpoint agreed to: no more than the hold is charged, and nothing for a run that failed.
ALTER TABLE ledger_hold ADD COLUMN is_agreed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger_entry ADD COLUMN endpoint TEXT;
ALTER TABLE ledger_entry ADD COLUMN endpoint_version INTEGER;
CREATE INDEX ledger_entry_endpoint ON ledger_entry (account_id, endpoint, at) WHERE endpoint IS NOT NULL;
