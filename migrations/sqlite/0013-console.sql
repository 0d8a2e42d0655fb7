-- What a person looks for among many jobs, and what is told of one afterwards.

-- What jobs of one workflow share: the title that follows from it, its node classes and its weights. Few rows, however many jobs.
-- `terms` has one line for each class (`c:…`) and each weights file (`w:…`), with a line feed before and behind each of them.
CREATE TABLE job_recipe (
  account_id TEXT NOT NULL,
  recipe TEXT NOT NULL,
  title TEXT NOT NULL,
  terms TEXT NOT NULL,
  -- Behind the retention of every job that has it.
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, recipe)
) STRICT, WITHOUT ROWID;

CREATE INDEX job_recipe_deadline ON job_recipe (expires_at);

-- null: submitted before there were recipes.
ALTER TABLE job ADD COLUMN recipe TEXT;
-- The code of the error, beside the error itself.
ALTER TABLE job ADD COLUMN code TEXT;
-- Attempts that ended before the job did, as JSON: lists of number, engine, from, to, why. null: none did.
ALTER TABLE job ADD COLUMN attempts TEXT;
-- Which node printed which lines and when, as JSON: lists of the line, the time, the node. null: nothing is known.
ALTER TABLE job_log ADD COLUMN marks TEXT;

UPDATE job SET code = json_extract(error, '$.code') WHERE status = 'failed' AND error IS NOT NULL;

-- By class, weights and title. One entry per submit, and it never moves.
CREATE INDEX job_recipe_listing ON job (account_id, recipe, created_at, id) WHERE recipe IS NOT NULL;
-- Jobs that failed, and no others.
CREATE INDEX job_code_listing ON job (account_id, code, created_at, id) WHERE code IS NOT NULL;
-- Ended jobs of engines beside the built-in one: a service without others has no entry here.
CREATE INDEX job_engine_listing ON job (account_id, engine_id, created_at, id)
  WHERE engine_id <> 'embedded' AND completed_at IS NOT NULL;
