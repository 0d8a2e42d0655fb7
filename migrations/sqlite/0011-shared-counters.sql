-- What many processes count together, and what tells them that a deployment has changed.

-- Counts the changes of all deployments, so that another process can ask for what is new.
ALTER TABLE deployment ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
UPDATE deployment SET version = (SELECT count(*) FROM deployment AS other WHERE other.id <= deployment.id);
CREATE INDEX deployment_version ON deployment (version);

-- The next number of a prompt, by account. Numbers are given out in blocks: those below are in use, or were left out by a restart.
CREATE TABLE prompt_number (
  account_id TEXT PRIMARY KEY,
  next INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The requests of an account in a window of time that began with the first of them.
CREATE TABLE rate_window (
  account_id TEXT PRIMARY KEY,
  ends_at INTEGER NOT NULL,
  used INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
