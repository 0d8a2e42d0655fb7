-- Calls of partner models: which are under way, what they have set aside, and what they answered, for as long as their
-- idempotency keys live. The narrow row is written when a call is let in and once more when it ends.

CREATE TABLE router_call (
  seq INTEGER PRIMARY KEY,
  -- The id of the request that began it; of a queued one the id that its caller got.
  id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  -- null: the caller gave no key. Then the row goes with the call.
  key TEXT,
  -- SHA-256 over method, path, query and body of the request.
  fingerprint TEXT NOT NULL,
  -- 1: submitted to the queue.
  queued INTEGER NOT NULL,
  -- waiting, running, done, interrupted, unusable, canceled, gone
  state TEXT NOT NULL,
  model TEXT NOT NULL,
  base_url TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  started_at INTEGER,
  -- How often it was let in anew after its process died: part of the hold's id.
  attempt INTEGER NOT NULL DEFAULT 0,
  -- null: nothing was set aside because the model is free.
  hold_micros INTEGER,
  -- What it counts against the ceiling of committed spend.
  spend_micros INTEGER NOT NULL,
  costly INTEGER NOT NULL,
  -- JSON: the provider's own name of the generation, and what its price needs of the input.
  progress TEXT
) STRICT;

CREATE UNIQUE INDEX router_call_key ON router_call (account_id, key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX router_call_queued ON router_call (id) WHERE queued = 1;
CREATE INDEX router_call_waiting ON router_call (account_id, seq) WHERE state = 'waiting';
-- For those that have waited too long.
CREATE INDEX router_call_patience ON router_call (created_at) WHERE state = 'waiting';
CREATE INDEX router_call_running ON router_call (seq) WHERE state = 'running';
CREATE INDEX router_call_deadline ON router_call (expires_at);

-- The bodies of queued calls that have not been dispatched for good.
CREATE TABLE router_input (
  seq INTEGER PRIMARY KEY,
  -- Exactly one of the two: small ones lie here, others are a blob.
  body BLOB,
  hash TEXT,
  size_bytes INTEGER NOT NULL
) STRICT;

CREATE INDEX router_input_hash ON router_input (hash) WHERE hash IS NOT NULL;

CREATE TABLE router_result (
  seq INTEGER PRIMARY KEY,
  -- null for a refusal.
  content_type TEXT,
  body BLOB,
  hash TEXT,
  size_bytes INTEGER NOT NULL,
  -- null: not reported.
  cost_micros INTEGER,
  -- JSON, or null for a result.
  refusal TEXT,
  finished_at INTEGER NOT NULL,
  -- Until when it may be told again; null: as long as the record lives.
  replay_until INTEGER
) STRICT;

CREATE INDEX router_result_hash ON router_result (hash) WHERE hash IS NOT NULL;

-- What an account has under way. Always equals the running rows.
CREATE TABLE router_account (
  account_id TEXT PRIMARY KEY,
  running INTEGER NOT NULL,
  costly INTEGER NOT NULL,
  committed_micros INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
