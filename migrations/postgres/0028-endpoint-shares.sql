-- phase: expand
-- Links to pages on which whoever has one may run an endpoint. Of the link only a digest is kept.
CREATE TABLE endpoint_share (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  account_id text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  version text COLLATE "C",
  note text NOT NULL,
  limits text NOT NULL,
  referrers text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  revoked_at bigint,
  created_by text COLLATE "C",
  digest bytea NOT NULL
);
CREATE UNIQUE INDEX endpoint_share_digest ON endpoint_share (digest);
CREATE INDEX endpoint_share_name ON endpoint_share (account_id, name);
