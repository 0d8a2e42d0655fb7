-- One thing that is done to many jobs: which, how far it is, and what became of each. Whichever process deals with it holds it by a lease.
CREATE TABLE bulk_action (
  id TEXT NOT NULL PRIMARY KEY,
  owner_id TEXT NOT NULL,
  key_id TEXT,
  actor TEXT,
  kind TEXT NOT NULL,
  asked TEXT NOT NULL,
  only_waiting INTEGER NOT NULL,
  priority INTEGER,
  has_more INTEGER NOT NULL,
  idempotency_key TEXT,
  digest TEXT NOT NULL,
  total INTEGER NOT NULL,
  done INTEGER NOT NULL,
  skipped INTEGER NOT NULL,
  refused INTEGER NOT NULL,
  parts INTEGER NOT NULL,
  state TEXT NOT NULL,
  reason TEXT,
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  ended_at INTEGER,
  expires_at INTEGER NOT NULL,
  lease_id TEXT,
  held_until INTEGER
) STRICT;
CREATE INDEX bulk_action_owner ON bulk_action (owner_id, created_at, id);
CREATE UNIQUE INDEX bulk_action_key ON bulk_action (owner_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX bulk_action_working ON bulk_action (changed_at, id) WHERE state = 'working';
CREATE INDEX bulk_action_expiry ON bulk_action (expires_at);

CREATE TABLE bulk_item (
  action_id TEXT NOT NULL,
  place INTEGER NOT NULL,
  part INTEGER NOT NULL,
  account_id TEXT NOT NULL,
  job_id TEXT NOT NULL,
  outcome TEXT NOT NULL,
  made_id TEXT,
  code TEXT,
  message TEXT,
  PRIMARY KEY (action_id, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX bulk_item_waiting ON bulk_item (action_id, place) WHERE outcome = 'waiting';
