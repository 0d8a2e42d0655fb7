-- phase: expand
-- One thing that is done to many jobs: which, how far it is, and what became of each. Whichever process deals with it holds it by a lease.
CREATE TABLE bulk_action (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  owner_id text COLLATE "C" NOT NULL,
  key_id text,
  actor text,
  kind text NOT NULL,
  asked text NOT NULL,
  only_waiting smallint NOT NULL,
  priority bigint,
  has_more smallint NOT NULL,
  idempotency_key text COLLATE "C",
  digest text NOT NULL,
  total bigint NOT NULL,
  done bigint NOT NULL,
  skipped bigint NOT NULL,
  refused bigint NOT NULL,
  parts bigint NOT NULL,
  state text NOT NULL,
  reason text,
  created_at bigint NOT NULL,
  changed_at bigint NOT NULL,
  ended_at bigint,
  expires_at bigint NOT NULL,
  lease_id text,
  held_until bigint
);
CREATE INDEX bulk_action_owner ON bulk_action (owner_id, created_at, id);
CREATE UNIQUE INDEX bulk_action_key ON bulk_action (owner_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX bulk_action_working ON bulk_action (changed_at, id) WHERE state = 'working';
CREATE INDEX bulk_action_expiry ON bulk_action (expires_at);

CREATE TABLE bulk_item (
  action_id text COLLATE "C" NOT NULL,
  place bigint NOT NULL,
  part bigint NOT NULL,
  account_id text COLLATE "C" NOT NULL,
  job_id text COLLATE "C" NOT NULL,
  outcome text NOT NULL,
  made_id text,
  code text,
  message text,
  PRIMARY KEY (action_id, place)
);
CREATE INDEX bulk_item_waiting ON bulk_item (action_id, place) WHERE outcome = 'waiting';
