-- Ended jobs by engine, those of the built-in one too: few of them among many others could be found by looking at all jobs only.
-- An entry is written when a job ends, never by a submit.
DROP INDEX job_engine_listing;
CREATE INDEX job_engine_listing ON job (account_id, engine_id, created_at, id)
  WHERE engine_id IS NOT NULL AND completed_at IS NOT NULL;
