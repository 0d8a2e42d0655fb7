-- Deployments on a release: each is an address, whose copies are rows of `deployment` (the pools).
CREATE TABLE released_deployment (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  build_id TEXT NOT NULL,
  name TEXT NOT NULL,
  gpu_class TEXT NOT NULL,
  region TEXT NOT NULL,
  min_workers INTEGER NOT NULL,
  max_workers INTEGER NOT NULL,
  status TEXT NOT NULL,
  stop_reason TEXT,
  error TEXT,
  revision INTEGER NOT NULL,
  release_id TEXT NOT NULL,
  release_version INTEGER NOT NULL,
  pending TEXT,
  progress TEXT,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  deleted_at INTEGER,
  deleted_by TEXT,
  version INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX released_deployment_name ON released_deployment (account_id, build_id, name) WHERE deleted_at IS NULL;
CREATE INDEX released_deployment_newest ON released_deployment (account_id, created_at, id);
CREATE INDEX released_deployment_active ON released_deployment (id) WHERE status NOT IN ('stopped', 'failed');

CREATE TABLE deployment_revision (
  deployment_id TEXT NOT NULL,
  revision INTEGER NOT NULL,
  release_id TEXT NOT NULL,
  release_version INTEGER NOT NULL,
  kind TEXT NOT NULL,
  from_revision INTEGER,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (deployment_id, revision)
) STRICT, WITHOUT ROWID;

-- The newest of each deployment.
CREATE TABLE deployment_event (
  deployment_id TEXT NOT NULL,
  n INTEGER NOT NULL,
  at INTEGER NOT NULL,
  status TEXT NOT NULL,
  message TEXT,
  release_id TEXT,
  PRIMARY KEY (deployment_id, n)
) STRICT, WITHOUT ROWID;

-- Kept for ever: whoever repeats a create gets the deployment that the first one made, also when that was deleted.
CREATE TABLE deployment_key (
  account_id TEXT NOT NULL,
  key TEXT NOT NULL,
  deployment_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, key)
) STRICT, WITHOUT ROWID;
