-- phase: expand
-- Uploads that can be continued. How many bytes have arrived is asked of the bytes themselves, so no request writes here while it sends,
-- but for its lease.

CREATE TABLE resumable_upload (
  id text COLLATE "C" PRIMARY KEY,
  account_id text COLLATE "C" NOT NULL,
  -- Of the whole: counts towards what the account may store until there is an asset.
  length_bytes bigint NOT NULL,
  -- JSON: what the asset will be.
  fields text NOT NULL,
  -- What the client said at the beginning, as it came.
  metadata text NOT NULL,
  -- What the storage of bytes calls them; null: there are none.
  place text,
  -- Of the whole, noted before the bytes get their final name.
  hash text COLLATE "C",
  -- What it has become.
  asset_id text COLLATE "C",
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  -- Whoever writes.
  lease_id text COLLATE "C",
  lease_until bigint
);

CREATE INDEX resumable_upload_open ON resumable_upload (account_id, length_bytes) WHERE asset_id IS NULL;
CREATE INDEX resumable_upload_expiry ON resumable_upload (expires_at);
