-- What is submitted at the times of cron fields. Whichever process takes a time notes it before it submits.
CREATE TABLE schedule (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  key_id TEXT,
  name TEXT NOT NULL,
  cron TEXT NOT NULL,
  time_zone TEXT NOT NULL,
  overlap TEXT NOT NULL,
  catch_up TEXT NOT NULL,
  pool TEXT,
  work TEXT NOT NULL,
  state TEXT NOT NULL,
  reason TEXT,
  next_at INTEGER,
  last_job_id TEXT,
  last_error TEXT,
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  taken_tick INTEGER,
  taken_at INTEGER,
  held_until INTEGER,
  has_waited INTEGER NOT NULL
) STRICT;
CREATE INDEX schedule_account ON schedule (account_id, created_at, id);
CREATE INDEX schedule_next ON schedule (next_at, id) WHERE next_at IS NOT NULL;

-- What became of the last times of each.
CREATE TABLE schedule_run (
  schedule_id TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  is_by_hand INTEGER NOT NULL,
  at INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  job_id TEXT,
  code TEXT,
  message TEXT,
  PRIMARY KEY (schedule_id, due_at, is_by_hand)
) STRICT, WITHOUT ROWID;
