-- What the library says of a file beside what it is: its owner's name for it, tags, metadata, preview. Null: nothing was said.
ALTER TABLE asset ADD COLUMN note TEXT;

-- The newest files of an account, as the library shows them; uploads and outputs apart, so that neither hides the other.
CREATE INDEX asset_upload_newest ON asset (account_id, seq) WHERE job_id IS NULL;
CREATE INDEX asset_output_newest ON asset (account_id, seq) WHERE job_id IS NOT NULL;

-- Files that the service fetches for an account. Their process writes how far it is; a running one that no longer does so is gone.
CREATE TABLE asset_import (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  url TEXT NOT NULL,
  name TEXT NOT NULL,
  status TEXT NOT NULL,
  bytes_total INTEGER,
  bytes_done INTEGER NOT NULL,
  asset_id TEXT,
  error TEXT,
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX asset_import_account ON asset_import (account_id, created_at);
CREATE INDEX asset_import_expiry ON asset_import (expires_at);
