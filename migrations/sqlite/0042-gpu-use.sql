-- What attempts at jobs took of a server: one row for each that computed there. Reports are made of them.
CREATE TABLE gpu_use (
  seq INTEGER PRIMARY KEY,
  job_id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  pool TEXT NOT NULL,
  engine_id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  ms INTEGER NOT NULL,
  classes TEXT NOT NULL,
  weights TEXT NOT NULL
) STRICT;
CREATE INDEX gpu_use_time ON gpu_use (ended_at);
CREATE INDEX gpu_use_account ON gpu_use (account_id, ended_at);
CREATE INDEX gpu_use_job ON gpu_use (job_id);
