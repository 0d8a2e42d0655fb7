-- phase: expand
-- Bounds on the jobs of a scope: what was counted in it, and its jobs that are not known to have ended. Both are written by the
-- transaction that records a job, under the lock of its account; jobs without bounds have no rows here.
CREATE TABLE run_scope (
  account_id text COLLATE "C" NOT NULL,
  scope text COLLATE "C" NOT NULL,
  -- JSON: runs and micro-dollars by period.
  tallies text NOT NULL,
  -- How many tickets it has, and from how many on somebody looks which of their jobs have ended.
  open integer NOT NULL,
  look_at integer NOT NULL,
  PRIMARY KEY (account_id, scope)
) WITH (fillfactor = 50);

CREATE TABLE run_ticket (
  account_id text COLLATE "C" NOT NULL,
  scope text COLLATE "C" NOT NULL,
  job_id uuid NOT NULL,
  -- In which periods it counts.
  counted_at bigint NOT NULL,
  -- What was held for it.
  micros bigint NOT NULL,
  -- 1: the job was taken back as if it had never been submitted.
  is_withdrawn smallint NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, scope, job_id)
);
CREATE INDEX run_ticket_job ON run_ticket (job_id);

-- The endpoints that a key may call and see, as JSON; null: all.
ALTER TABLE api_key ADD COLUMN endpoints text;

-- What was charged for runs of endpoints; null: of none, or written before this was noted.
ALTER TABLE ledger_hold ADD COLUMN endpoint text COLLATE "C";
ALTER TABLE ledger_hold ADD COLUMN endpoint_version integer;
-- 1: a price that the caller of an endpoint agreed to: no more than the hold is charged, and nothing for a run that failed.
ALTER TABLE ledger_hold ADD COLUMN is_agreed smallint NOT NULL DEFAULT 0;
ALTER TABLE ledger_entry ADD COLUMN endpoint text COLLATE "C";
ALTER TABLE ledger_entry ADD COLUMN endpoint_version integer;
CREATE INDEX ledger_entry_endpoint ON ledger_entry (account_id, endpoint, at) WHERE endpoint IS NOT NULL;
