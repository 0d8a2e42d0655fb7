-- phase: expand
-- Batches: which jobs came in one request, and why others of it are not there. Jobs know nothing of it.

CREATE TABLE job_batch (
  id uuid PRIMARY KEY,
  account_id text COLLATE "C" NOT NULL,
  pool text COLLATE "C" NOT NULL,
  -- Both are also those of every job of it.
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  -- 1: it was to be accepted whole or not at all.
  is_whole smallint NOT NULL,
  -- Of the request: tells a repetition from another request with the same idempotency key.
  digest text NOT NULL,
  -- JSON: by place the id of the job, null where there is none.
  jobs text NOT NULL,
  -- JSON: what was wrong with those that are missing.
  refused text NOT NULL,
  -- What kept out those that are missing although nothing is wrong with them; null: nothing did.
  limited_by text
);

CREATE INDEX job_batch_expiry ON job_batch (expires_at);

ALTER TABLE idempotency_key ADD COLUMN batch_id uuid;
