-- What a submit no longer writes: only ended jobs are found by these, live ones are few and asked directly.
DROP INDEX job_recipe_listing;
CREATE INDEX job_recipe_listing ON job (account_id, recipe, created_at, id) WHERE recipe IS NOT NULL AND completed_at IS NOT NULL;
DROP INDEX job_title_listing;
CREATE INDEX job_title_listing ON job (account_id, title, created_at, id) WHERE title IS NOT NULL AND completed_at IS NOT NULL;

-- Whoever writes a new job tells of it: a trigger costs every insert, also where nobody is to be told.
DROP TRIGGER webhook_job_queued;
