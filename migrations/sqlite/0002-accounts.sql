-- Accounts that pay: who they are, what they show, what they have and what was changed for them. The hot row `account` stays
-- as narrow as it was; everything that a submit or a claim does not need stands beside it.

-- Absent for an account that is not metered (the local kind): then nothing is ever held or charged.
CREATE TABLE credit_account (
  account_id TEXT PRIMARY KEY,
  -- Sums of the ledger's books of the same names, kept with every entry.
  available INTEGER NOT NULL DEFAULT 0,
  held INTEGER NOT NULL DEFAULT 0,
  floor INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- One balanced move between the four books of an account, in micro-dollars. Nothing is ever changed or removed.
CREATE TABLE ledger_entry (
  seq INTEGER PRIMARY KEY,
  account_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  reference TEXT NOT NULL,
  granted INTEGER NOT NULL,
  available INTEGER NOT NULL,
  held INTEGER NOT NULL,
  charged INTEGER NOT NULL,
  at INTEGER NOT NULL,
  memo TEXT NOT NULL,
  CHECK (granted + available + held + charged = 0)
) STRICT;

CREATE UNIQUE INDEX ledger_entry_once ON ledger_entry (reference, kind);
CREATE INDEX ledger_entry_account ON ledger_entry (account_id, seq);
CREATE INDEX ledger_entry_period ON ledger_entry (account_id, at);

CREATE TRIGGER ledger_entry_no_update BEFORE UPDATE ON ledger_entry
BEGIN SELECT raise(ABORT, 'ledger entries are never changed'); END;
CREATE TRIGGER ledger_entry_no_delete BEFORE DELETE ON ledger_entry
BEGIN SELECT raise(ABORT, 'ledger entries are never removed'); END;

-- Holds that are open. A settled or released one is known by its entries.
CREATE TABLE ledger_hold (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  micros INTEGER NOT NULL,
  held_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX ledger_hold_account ON ledger_hold (account_id, held_at);

-- Every change that an operator makes, written in the transaction of the change. Never changed, never removed.
CREATE TABLE audit_log (
  seq INTEGER PRIMARY KEY,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  subject TEXT NOT NULL,
  at INTEGER NOT NULL,
  details TEXT NOT NULL,
  outcome TEXT NOT NULL
) STRICT;

CREATE INDEX audit_log_subject ON audit_log (subject, seq);

CREATE TRIGGER audit_log_no_update BEFORE UPDATE ON audit_log
BEGIN SELECT raise(ABORT, 'audit lines are never changed'); END;
CREATE TRIGGER audit_log_no_delete BEFORE DELETE ON audit_log
BEGIN SELECT raise(ABORT, 'audit lines are never removed'); END;

-- A deployment's id is the name of its pool.
CREATE TABLE deployment (
  id TEXT PRIMARY KEY,
  -- null: every account may use it.
  account_id TEXT,
  state TEXT NOT NULL,
  workers INTEGER NOT NULL,
  idle_after INTEGER,
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Jobs of deployments only, so that jobs of the common pool pay for neither index.
CREATE INDEX job_pool_listing ON job (account_id, pool, status, created_at, id) WHERE pool <> 'default';
CREATE INDEX job_pool_live ON job (pool, status) WHERE pool <> 'default' AND status IN ('queued', 'running', 'canceling');

-- Accounts as operators see them; the local kind's implicit one has no row here.
CREATE TABLE account_profile (
  account_id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  tier TEXT NOT NULL,
  -- JSON: limits in place of the tier's.
  overrides TEXT NOT NULL,
  status TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  -- Counts the changes of all accounts, so that another process can ask for what is new.
  version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX account_profile_version ON account_profile (version);

-- Digests only: nobody can read a key out of this table. Revoked keys stay, for the record.
CREATE TABLE api_key (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  name TEXT NOT NULL,
  -- JSON list, or null for "everything".
  scopes TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  last_used_at INTEGER,
  digest BLOB NOT NULL,
  previous_digest BLOB,
  previous_until INTEGER,
  version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX api_key_version ON api_key (version);
CREATE INDEX api_key_account ON api_key (account_id, created_at, id);

-- What a job costs, agreed when it was submitted; null: nothing.
ALTER TABLE job ADD COLUMN price_second INTEGER;
ALTER TABLE job ADD COLUMN price_minimum INTEGER;

-- Request rates. `booked_until`, in microseconds, is when the account will have earned all requests that it was given.
CREATE TABLE rate_limit (
  account_id TEXT PRIMARY KEY,
  booked_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
