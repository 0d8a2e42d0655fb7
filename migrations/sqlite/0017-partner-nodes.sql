-- Calls of partner nodes: the task that their caller follows itself, as the provider names it, and the job that caused the call.
ALTER TABLE router_call ADD COLUMN task TEXT;
ALTER TABLE router_call ADD COLUMN job_id TEXT;

-- Most calls have none.
CREATE INDEX router_call_task ON router_call (account_id, task) WHERE task IS NOT NULL;
