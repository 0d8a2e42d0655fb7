-- phase: expand
-- Deployments on a release: each is an address, whose copies are rows of `deployment` (the pools).
CREATE TABLE released_deployment (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  account_id text COLLATE "C" NOT NULL,
  build_id text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  gpu_class text COLLATE "C" NOT NULL,
  region text COLLATE "C" NOT NULL,
  min_workers bigint NOT NULL,
  max_workers bigint NOT NULL,
  status text COLLATE "C" NOT NULL,
  stop_reason text COLLATE "C",
  error text COLLATE "C",
  revision bigint NOT NULL,
  release_id text COLLATE "C" NOT NULL,
  release_version bigint NOT NULL,
  pending text COLLATE "C",
  progress text COLLATE "C",
  created_by text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  deleted_at bigint,
  deleted_by text COLLATE "C",
  version bigint NOT NULL
);
CREATE UNIQUE INDEX released_deployment_name ON released_deployment (account_id, build_id, name) WHERE deleted_at IS NULL;
CREATE INDEX released_deployment_newest ON released_deployment (account_id, created_at, id);
CREATE INDEX released_deployment_active ON released_deployment (id) WHERE status NOT IN ('stopped', 'failed');

CREATE TABLE deployment_revision (
  deployment_id text COLLATE "C" NOT NULL,
  revision bigint NOT NULL,
  release_id text COLLATE "C" NOT NULL,
  release_version bigint NOT NULL,
  kind text COLLATE "C" NOT NULL,
  from_revision bigint,
  created_by text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (deployment_id, revision)
);

-- The newest of each deployment.
CREATE TABLE deployment_event (
  deployment_id text COLLATE "C" NOT NULL,
  n bigint NOT NULL,
  at bigint NOT NULL,
  status text COLLATE "C" NOT NULL,
  message text COLLATE "C",
  release_id text COLLATE "C",
  PRIMARY KEY (deployment_id, n)
);

-- Kept for ever: whoever repeats a create gets the deployment that the first one made, also when that was deleted.
CREATE TABLE deployment_key (
  account_id text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  deployment_id text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (account_id, key)
);
