-- phase: expand
-- What is told of one job beside the job itself, and what its page and the gallery look for.

-- What follows from its workflow, where its submitter gave no name; null: submitted before this column was there, then its recipe
-- has it.
ALTER TABLE job ADD COLUMN title text COLLATE "C";
ALTER TABLE job_done ADD COLUMN title text COLLATE "C";
-- Which types its outputs have, one bit for each (rows/output-types.ts); null as well for jobs that ended before this column was there.
ALTER TABLE job_done ADD COLUMN output_types smallint;
-- JSON: the key of its submit, the files that its graph names, where an editor had put its nodes. null: none of these.
ALTER TABLE job_text ADD COLUMN origin text;

-- By a word of the title.
CREATE INDEX job_done_title ON job_done (account_id, title, created_at, id) WHERE title IS NOT NULL;
-- Jobs with outputs, by what they made.
CREATE INDEX job_done_output ON job_done (account_id, output_types, created_at, id) WHERE output_types > 0;
