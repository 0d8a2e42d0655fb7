-- Whom an owner lets call an endpoint, so that an account finds what others share with it. Written with the settings, which say the same.
CREATE TABLE endpoint_caller (
  -- The id of an account, or * for every one.
  caller TEXT NOT NULL,
  account_id TEXT NOT NULL,
  name TEXT NOT NULL,
  PRIMARY KEY (caller, account_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX endpoint_caller_endpoint ON endpoint_caller (account_id, name);

INSERT OR IGNORE INTO endpoint_caller
SELECT callers.value, account_id, name FROM endpoint, json_each(settings, '$.callers') AS callers WHERE is_removed = 0;

-- A version is found by its content alone, whosever it is.
CREATE INDEX endpoint_version_content ON endpoint_version (hash);

-- Runs that other accounts made of an endpoint, by its name with its owner before it: the owner is told how many, and what they cost.
CREATE INDEX job_label_of_others ON job_label (value, created_at, job_id) WHERE key = '@endpoint' AND instr(value, '/') > 0;
CREATE INDEX ledger_entry_of_others ON ledger_entry (endpoint, at) WHERE instr(endpoint, '/') > 0;
