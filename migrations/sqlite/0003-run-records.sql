-- What clients of the v1 API see of a job beside the job itself. JSON texts are written once and read whole.

-- How it was submitted; only for jobs that came with a submission. Never a credential.
CREATE TABLE job_submission (
  seq INTEGER PRIMARY KEY,
  workflow_id TEXT,
  text TEXT NOT NULL
) STRICT;

-- What its run showed, written with the end of the run.
CREATE TABLE job_run (
  seq INTEGER PRIMARY KEY,
  text TEXT NOT NULL
) STRICT;

-- Taken out of the history one by one; the job itself stays until its retention ends.
CREATE TABLE job_hidden (
  seq INTEGER PRIMARY KEY
) STRICT;

-- Everything that had ended by then is out of the history: clearing costs the same whatever there is to clear.
CREATE TABLE history_clear (
  account_id TEXT PRIMARY KEY,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The history is told in the order in which runs ended.
CREATE INDEX job_ended ON job (account_id, completed_at, seq)
  WHERE status IN ('succeeded', 'failed', 'canceled') AND started_at IS NOT NULL;

-- Where an engine put a file below its folder; null at the top. Names stay flat, this only tells two of one name apart.
ALTER TABLE asset ADD COLUMN subfolder TEXT;

-- Small files of an account's own: settings, saved graphs.
CREATE TABLE user_file (
  id INTEGER PRIMARY KEY,
  account_id TEXT NOT NULL,
  path TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  modified_at INTEGER NOT NULL,
  bytes BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX user_file_path ON user_file (account_id, path);
