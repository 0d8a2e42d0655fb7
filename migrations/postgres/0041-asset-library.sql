-- phase: expand
-- What the library says of a file beside what it is: its owner's name for it, tags, metadata, preview. Null: nothing was said.
ALTER TABLE asset ADD COLUMN note text;
ALTER TABLE output ADD COLUMN note text;

-- The newest files of an account, as the library shows them.
CREATE INDEX asset_newest ON asset (account_id, seq);
CREATE INDEX output_newest ON output (account_id, seq);

-- Files that the service fetches for an account. Their process writes how far it is; a running one that no longer does so is gone.
CREATE TABLE asset_import (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  account_id text COLLATE "C" NOT NULL,
  url text NOT NULL,
  name text NOT NULL,
  status text NOT NULL,
  bytes_total bigint,
  bytes_done bigint NOT NULL,
  asset_id text,
  error text,
  created_at bigint NOT NULL,
  changed_at bigint NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX asset_import_account ON asset_import (account_id, created_at);
CREATE INDEX asset_import_expiry ON asset_import (expires_at);
