-- phase: expand
-- Results that answer further jobs: only jobs that ask for it leave a row here. A row says where to look; that the job and all of its
-- outputs are still there is checked whenever it is used.
CREATE TABLE job_result (
  account_id text COLLATE "C" NOT NULL,
  -- Of the graph, its files, its notes and the build of the engine.
  key text COLLATE "C" NOT NULL,
  job_id uuid NOT NULL,
  -- How long the run took that made the result, in milliseconds.
  run_ms bigint NOT NULL,
  -- The expiry of the job.
  expires_at bigint NOT NULL,
  PRIMARY KEY (account_id, key)
);

CREATE INDEX job_result_expiry ON job_result (expires_at);

-- The job whose result answered this one; null: it was run itself. The fourth bit of `job.needs_extra_data`, 8, says that the job leaves
-- a row above when it succeeds.
ALTER TABLE job_done ADD COLUMN reused_from uuid;
