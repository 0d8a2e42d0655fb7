-- phase: expand
-- What many processes count together, and what tells them that a deployment has changed.

-- Counts the changes of all deployments, in the order of their commits (`database/versions.ts`).
ALTER TABLE deployment ADD COLUMN version bigint NOT NULL DEFAULT 0;
UPDATE deployment SET version = (SELECT count(*) FROM deployment AS other WHERE other.id <= deployment.id);
CREATE INDEX deployment_version ON deployment (version);

-- The next number of a prompt, by account.
CREATE TABLE prompt_number (
  account_id text COLLATE "C" PRIMARY KEY,
  next bigint NOT NULL
) WITH (fillfactor = 50);

-- The requests of an account in a window of time that began with the first of them.
CREATE TABLE rate_window (
  account_id text COLLATE "C" PRIMARY KEY,
  ends_at bigint NOT NULL,
  used bigint NOT NULL,
  -- How many of them the latest statement was given: it reads its own answer here.
  granted bigint NOT NULL
) WITH (fillfactor = 50);
