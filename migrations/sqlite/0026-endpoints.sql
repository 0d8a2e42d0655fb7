-- Workflows as endpoints: a name that moves between versions, and the versions, which never change.
CREATE TABLE endpoint (
  account_id TEXT NOT NULL,
  name TEXT NOT NULL,
  title TEXT NOT NULL,
  description TEXT NOT NULL,
  state TEXT NOT NULL,
  current_version INTEGER NOT NULL,
  last_version INTEGER NOT NULL,
  aliases TEXT NOT NULL,
  settings TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  is_removed INTEGER NOT NULL,
  PRIMARY KEY (account_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE endpoint_version (
  account_id TEXT NOT NULL,
  name TEXT NOT NULL,
  number INTEGER NOT NULL,
  hash TEXT NOT NULL,
  note TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  created_by TEXT,
  graph TEXT NOT NULL,
  inputs TEXT NOT NULL,
  outputs TEXT NOT NULL,
  required TEXT NOT NULL,
  PRIMARY KEY (account_id, name, number)
) STRICT;
CREATE UNIQUE INDEX endpoint_version_hash ON endpoint_version (account_id, name, hash);
