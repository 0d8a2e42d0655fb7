-- What is told of one job beside the job itself, and what its page and the gallery look for.

-- What follows from its workflow, where its submitter gave no name; null: submitted before this column was there, then its recipe
-- has it.
ALTER TABLE job ADD COLUMN title TEXT;
-- Which types its outputs have, one bit for each (rows/output-types.ts); set when the job ends.
ALTER TABLE job ADD COLUMN output_types INTEGER NOT NULL DEFAULT 0;
-- JSON: the key of its submit, the files that its graph names, where an editor had put its nodes. null: none of these.
ALTER TABLE job_workflow ADD COLUMN origin TEXT;

UPDATE job SET output_types = (
    SELECT sum(DISTINCT CASE type WHEN 'image' THEN 1 WHEN 'video' THEN 2 WHEN 'audio' THEN 4 WHEN 'text' THEN 8
      WHEN 'file' THEN 16 WHEN 'latent' THEN 32 ELSE 0 END)
    FROM job_output WHERE job_output.seq = job.seq)
  WHERE completed_at IS NOT NULL AND EXISTS (SELECT 1 FROM job_output WHERE job_output.seq = job.seq);

-- By a word of the title. One entry per submit, and it never moves.
CREATE INDEX job_title_listing ON job (account_id, title, created_at, id) WHERE title IS NOT NULL;
-- Ended jobs with outputs, by what they made.
CREATE INDEX job_output_listing ON job (account_id, output_types, created_at, id) WHERE output_types <> 0;
