-- phase: expand
-- Not to be run before this time. A job that is held for it has a priority far below all others, so that claims see what is due first.
ALTER TABLE job ADD COLUMN not_before bigint;
ALTER TABLE job_done ADD COLUMN not_before bigint;
-- Not worth running when it still waits then.
ALTER TABLE job ADD COLUMN queue_until bigint;
ALTER TABLE job_done ADD COLUMN queue_until bigint;
CREATE INDEX job_hold ON job (not_before) WHERE status = 'queued' AND priority < -5000000;
CREATE INDEX job_queue_until ON job (queue_until) WHERE status = 'queued' AND queue_until IS NOT NULL;

-- What claims nothing: the service, a pool, an account; 'own': an account by its own wish.
CREATE TABLE queue_pause (
  scope text NOT NULL,
  name text COLLATE "C" NOT NULL,
  reason text,
  paused_at bigint NOT NULL,
  PRIMARY KEY (scope, name)
);
