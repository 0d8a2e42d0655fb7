-- Uploads that can be continued. How many bytes have arrived is asked of the bytes themselves, so no request writes here while it sends,
-- but for its lease.

CREATE TABLE resumable_upload (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  -- Of the whole: counts towards what the account may store until there is an asset.
  length_bytes INTEGER NOT NULL,
  -- JSON: what the asset will be.
  fields TEXT NOT NULL,
  -- What the client said at the beginning, as it came.
  metadata TEXT NOT NULL,
  -- What the storage of bytes calls them; null: there are none.
  place TEXT,
  -- Of the whole, noted before the bytes get their final name.
  hash TEXT,
  -- What it has become.
  asset_id TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  -- Whoever writes.
  lease_id TEXT,
  lease_until INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX resumable_upload_open ON resumable_upload (account_id, length_bytes) WHERE asset_id IS NULL;
CREATE INDEX resumable_upload_expiry ON resumable_upload (expires_at);
