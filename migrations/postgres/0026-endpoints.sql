-- phase: expand
-- Workflows as endpoints: a name that moves between versions, and the versions, which never change.
CREATE TABLE endpoint (
  account_id text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  title text NOT NULL,
  description text NOT NULL,
  state text COLLATE "C" NOT NULL,
  current_version integer NOT NULL,
  last_version integer NOT NULL,
  aliases text NOT NULL,
  settings text NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  revision bigint NOT NULL,
  is_removed smallint NOT NULL,
  PRIMARY KEY (account_id, name)
);

CREATE TABLE endpoint_version (
  account_id text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  number integer NOT NULL,
  hash text COLLATE "C" NOT NULL,
  note text NOT NULL,
  created_at bigint NOT NULL,
  created_by text COLLATE "C",
  graph text NOT NULL,
  inputs text NOT NULL,
  outputs text NOT NULL,
  required text NOT NULL,
  PRIMARY KEY (account_id, name, number)
);
CREATE UNIQUE INDEX endpoint_version_hash ON endpoint_version (account_id, name, hash);
