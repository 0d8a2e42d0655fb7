-- phase: expand
-- What an operator looks for among the jobs of all accounts. Entries that every submit writes are kept to one, which never moves.

CREATE INDEX job_time ON job (created_at, id);
CREATE INDEX job_done_time ON job_done (created_at, id);
-- Of those that did not succeed.
CREATE INDEX job_done_status_time ON job_done (status, created_at, id) WHERE status <> 'succeeded';
CREATE INDEX job_done_code_time ON job_done (code, created_at, id) WHERE code IS NOT NULL;
CREATE INDEX job_done_engine_time ON job_done (engine_id, created_at, id) WHERE engine_id IS NOT NULL;
-- Deployments only.
CREATE INDEX job_done_pool_time ON job_done (pool, created_at, id) WHERE pool <> 'default';
-- What came to an end in the last ten seconds.
CREATE INDEX job_done_completed ON job_done (completed_at);
