-- Builds: editable definitions of environments, releases that are cut from them, what those became on each platform, and uploaded files.
CREATE TABLE build (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  name TEXT NOT NULL,
  description TEXT,
  definition TEXT NOT NULL,
  created_by TEXT,
  created_at INTEGER NOT NULL,
  -- The revision: later with every change.
  updated_at INTEGER NOT NULL,
  last_version INTEGER NOT NULL,
  model_count INTEGER NOT NULL,
  pack_count INTEGER NOT NULL
) STRICT;
CREATE INDEX build_of_account ON build (account_id, id);

CREATE TABLE build_release (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  build_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  -- Of the definition: the same one is the same release.
  content_hash TEXT NOT NULL,
  definition TEXT NOT NULL,
  created_by TEXT,
  created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX build_release_version ON build_release (build_id, version);
CREATE UNIQUE INDEX build_release_content ON build_release (build_id, content_hash);

CREATE TABLE build_artifact (
  id TEXT NOT NULL PRIMARY KEY,
  release_id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  -- As os/gpu.
  target TEXT NOT NULL,
  status TEXT NOT NULL,
  failure_reason TEXT,
  queued_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER,
  attempts INTEGER NOT NULL,
  lock TEXT,
  archive_sha256 TEXT,
  size_bytes INTEGER,
  classes TEXT,
  log_bytes INTEGER NOT NULL,
  is_log_truncated INTEGER NOT NULL,
  builder TEXT,
  lease_id TEXT,
  lease_until INTEGER
) STRICT;
CREATE INDEX build_artifact_release ON build_artifact (release_id, position);
CREATE INDEX build_artifact_status ON build_artifact (status, queued_at);
CREATE INDEX build_artifact_open ON build_artifact (account_id, status);

-- In pieces, as it came; position is how many bytes came before.
CREATE TABLE build_log (
  artifact_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (artifact_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE build_blob (
  id TEXT NOT NULL PRIMARY KEY,
  account_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  filename TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  uploaded_at INTEGER,
  -- Of the stored bytes.
  hash TEXT,
  used_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX build_blob_content ON build_blob (account_id, kind, sha256);
CREATE INDEX build_blob_hash ON build_blob (hash) WHERE hash IS NOT NULL;
CREATE INDEX build_blob_used ON build_blob (used_at);

-- Which builds and releases name a blob.
CREATE TABLE build_blob_use (
  blob_id TEXT NOT NULL,
  holder TEXT NOT NULL,
  PRIMARY KEY (blob_id, holder)
) STRICT, WITHOUT ROWID;
CREATE INDEX build_blob_use_holder ON build_blob_use (holder);

-- Who builds at the moment, and for what.
CREATE TABLE builder (
  id TEXT NOT NULL PRIMARY KEY,
  targets TEXT NOT NULL,
  base_images TEXT NOT NULL,
  until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
