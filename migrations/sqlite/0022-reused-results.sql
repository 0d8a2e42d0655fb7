-- Results that answer further jobs: only jobs that ask for it leave a row here. A row says where to look; that the job and all of its
-- outputs are still there is checked whenever it is used.
CREATE TABLE job_result (
  account_id TEXT NOT NULL,
  -- Of the graph, its files, its notes and the build of the engine.
  key TEXT NOT NULL,
  job_id TEXT NOT NULL,
  -- How long the run took that made the result, in milliseconds.
  run_ms INTEGER NOT NULL,
  -- The expiry of the job.
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX job_result_expiry ON job_result (expires_at);

-- The job whose result answered this one; null: it was run itself. The fourth bit of `needs_extra_data`, 8, says that the job leaves a
-- row above when it succeeds.
ALTER TABLE job ADD COLUMN reused_from TEXT;
