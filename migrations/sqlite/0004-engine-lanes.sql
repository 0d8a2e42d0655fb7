-- What a job needs of an engine, as a short key: jobs with the same key can run on the same engines. '' means that whatever
-- engine the pool has will do; then the key costs nothing, for its index holds only jobs that have one.
ALTER TABLE job ADD COLUMN needs TEXT NOT NULL DEFAULT '';

-- The engine of the present or the last attempt.
ALTER TABLE job ADD COLUMN engine_id TEXT;

-- The first entry of each (needs, account) is the head of a lane; a claim steps from head to head, however long the lanes are.
CREATE INDEX job_lane ON job (pool, needs, account_id, priority DESC, seq) WHERE status = 'queued' AND needs <> '';
