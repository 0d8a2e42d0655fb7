-- phase: expand
-- What a person looks for among many jobs, and what is told of one afterwards.

-- What jobs of one workflow share: the title that follows from it, its node classes and its weights. Few rows, however many jobs.
-- `terms` has one line for each class (`c:…`) and each weights file (`w:…`), with a line feed before and behind each of them.
CREATE TABLE job_recipe (
  account_id text COLLATE "C" NOT NULL,
  recipe text COLLATE "C" NOT NULL,
  title text NOT NULL,
  terms text NOT NULL,
  -- Behind the retention of every job that has it.
  expires_at bigint NOT NULL,
  PRIMARY KEY (account_id, recipe)
);
CREATE INDEX job_recipe_deadline ON job_recipe (expires_at);

-- null: submitted before there were recipes. Live jobs are few, so they are walked and need no index of their own.
ALTER TABLE job ADD COLUMN recipe text COLLATE "C";
-- Attempts that ended before the job did, as JSON: lists of number, engine, from, to, why. null: none did.
ALTER TABLE job ADD COLUMN attempts text;
ALTER TABLE job_done ADD COLUMN recipe text COLLATE "C";
ALTER TABLE job_done ADD COLUMN attempts text;
-- The code of the error, beside the error itself; null as well for jobs that ended before this column was there.
ALTER TABLE job_done ADD COLUMN code text COLLATE "C";
-- Which node printed which lines and when, as JSON: lists of the line, the time, the node. null: nothing is known.
ALTER TABLE job_log ADD COLUMN marks text;

-- By class, weights and title.
CREATE INDEX job_done_recipe ON job_done (account_id, recipe, created_at, id) WHERE recipe IS NOT NULL;
-- Jobs that failed, and no others.
CREATE INDEX job_done_code ON job_done (account_id, code, created_at, id) WHERE code IS NOT NULL;
CREATE INDEX job_done_engine ON job_done (account_id, engine_id, created_at, id) WHERE engine_id IS NOT NULL;
