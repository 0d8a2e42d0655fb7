-- Links to pages on which whoever has one may run an endpoint. Of the link only a digest is kept.
CREATE TABLE endpoint_share (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  name TEXT NOT NULL,
  version TEXT,
  note TEXT NOT NULL,
  limits TEXT NOT NULL,
  referrers TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  revoked_at INTEGER,
  created_by TEXT,
  digest BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX endpoint_share_digest ON endpoint_share (digest);
CREATE INDEX endpoint_share_name ON endpoint_share (account_id, name);
