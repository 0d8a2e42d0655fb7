-- phase: expand
-- What is submitted at the times of cron fields. Whichever process takes a time notes it before it submits.
CREATE TABLE schedule (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  account_id text COLLATE "C" NOT NULL,
  key_id text,
  name text NOT NULL,
  cron text NOT NULL,
  time_zone text NOT NULL,
  overlap text NOT NULL,
  catch_up text NOT NULL,
  pool text,
  work text NOT NULL,
  state text NOT NULL,
  reason text,
  next_at bigint,
  last_job_id text,
  last_error text,
  created_at bigint NOT NULL,
  changed_at bigint NOT NULL,
  taken_tick bigint,
  taken_at bigint,
  held_until bigint,
  has_waited smallint NOT NULL
);
CREATE INDEX schedule_account ON schedule (account_id, created_at, id);
CREATE INDEX schedule_next ON schedule (next_at, id) WHERE next_at IS NOT NULL;

-- What became of the last times of each.
CREATE TABLE schedule_run (
  schedule_id text COLLATE "C" NOT NULL,
  due_at bigint NOT NULL,
  is_by_hand smallint NOT NULL,
  at bigint NOT NULL,
  outcome text NOT NULL,
  job_id text,
  code text,
  message text,
  PRIMARY KEY (schedule_id, due_at, is_by_hand)
);
