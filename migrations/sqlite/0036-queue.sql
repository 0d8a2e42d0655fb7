-- Not to be run before this time. A job that is held for it has a priority far below all others, so that claims see what is due first.
ALTER TABLE job ADD COLUMN not_before INTEGER;
-- Not worth running when it still waits then.
ALTER TABLE job ADD COLUMN queue_until INTEGER;
CREATE INDEX job_hold ON job (not_before) WHERE status = 'queued' AND priority < -5000000;
CREATE INDEX job_queue_until ON job (queue_until) WHERE status = 'queued' AND queue_until IS NOT NULL;

-- What claims nothing: the service, a pool, an account; 'own': an account by its own wish.
CREATE TABLE queue_pause (
  scope TEXT NOT NULL,
  name TEXT NOT NULL,
  reason TEXT,
  paused_at INTEGER NOT NULL,
  PRIMARY KEY (scope, name)
) STRICT, WITHOUT ROWID;

-- One that waited too long is kept for as long as others.

CREATE INDEX job_kept_expired ON job (max(completed_at, expires_at)) WHERE status = 'expired';
