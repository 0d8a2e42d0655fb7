-- A run that its engine still has is taken on by another process under another lease. Its prompts bear the id of the lease under which
-- it began; null: that is the present one. The other column bounds how often in a row that is done.
ALTER TABLE job ADD COLUMN run_id TEXT;
ALTER TABLE job ADD COLUMN adoptions_over_at INTEGER;
