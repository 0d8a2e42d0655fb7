-- What an operator looks for among the jobs of all accounts. Entries that every submit writes are kept to one, which never moves.

CREATE INDEX job_time ON job (created_at, id);
-- Written at the end of a job, and only of one that did not succeed.
CREATE INDEX job_status_time ON job (status, created_at, id) WHERE status IN ('failed', 'canceled', 'expired');
CREATE INDEX job_code_time ON job (code, created_at, id) WHERE code IS NOT NULL;
-- Ended jobs of engines beside the built-in one.
CREATE INDEX job_engine_time ON job (engine_id, created_at, id) WHERE engine_id <> 'embedded' AND completed_at IS NOT NULL;
-- Deployments only.
CREATE INDEX job_pool_time ON job (pool, created_at, id) WHERE pool <> 'default';
