-- Batches: which jobs came in one request, and why others of it are not there. Jobs know nothing of it.

CREATE TABLE job_batch (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  pool TEXT NOT NULL,
  -- Both are also those of every job of it.
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  -- 1: it was to be accepted whole or not at all.
  is_whole INTEGER NOT NULL,
  -- Of the request: tells a repetition from another request with the same idempotency key.
  digest TEXT NOT NULL,
  -- JSON: by place the id of the job, null where there is none.
  jobs TEXT NOT NULL,
  -- JSON: what was wrong with those that are missing.
  refused TEXT NOT NULL,
  -- What kept out those that are missing although nothing is wrong with them; null: nothing did.
  limited_by TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX job_batch_expiry ON job_batch (expires_at);

ALTER TABLE idempotency_key ADD COLUMN batch_id TEXT;
