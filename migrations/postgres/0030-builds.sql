-- phase: expand
-- Builds: editable definitions of environments, releases that are cut from them, what those became on each platform, and uploaded files.
CREATE TABLE build (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  account_id text COLLATE "C" NOT NULL,
  name text NOT NULL,
  description text,
  definition text NOT NULL,
  created_by text COLLATE "C",
  created_at bigint NOT NULL,
  -- The revision: later with every change.
  updated_at bigint NOT NULL,
  last_version integer NOT NULL,
  model_count integer NOT NULL,
  pack_count integer NOT NULL
);
CREATE INDEX build_of_account ON build (account_id, id);

CREATE TABLE build_release (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  account_id text COLLATE "C" NOT NULL,
  build_id text COLLATE "C" NOT NULL,
  version integer NOT NULL,
  -- Of the definition: the same one is the same release.
  content_hash text COLLATE "C" NOT NULL,
  definition text NOT NULL,
  created_by text COLLATE "C",
  created_at bigint NOT NULL
);
CREATE UNIQUE INDEX build_release_version ON build_release (build_id, version);
CREATE UNIQUE INDEX build_release_content ON build_release (build_id, content_hash);

CREATE TABLE build_artifact (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  release_id text COLLATE "C" NOT NULL,
  account_id text COLLATE "C" NOT NULL,
  position integer NOT NULL,
  -- As os/gpu.
  target text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL,
  failure_reason text,
  queued_at bigint NOT NULL,
  started_at bigint,
  finished_at bigint,
  attempts integer NOT NULL,
  lock text,
  archive_sha256 text COLLATE "C",
  size_bytes bigint,
  classes text,
  log_bytes bigint NOT NULL,
  is_log_truncated smallint NOT NULL,
  builder text COLLATE "C",
  lease_id text COLLATE "C",
  lease_until bigint
);
CREATE INDEX build_artifact_release ON build_artifact (release_id, position);
CREATE INDEX build_artifact_unfinished ON build_artifact (status, queued_at) WHERE status IN ('queued', 'building');
CREATE INDEX build_artifact_open ON build_artifact (account_id, status) WHERE status IN ('queued', 'building');
CREATE INDEX build_artifact_ready ON build_artifact (finished_at) WHERE status = 'ready';

-- In pieces, as it came; position is how many bytes came before.
CREATE TABLE build_log (
  artifact_id text COLLATE "C" NOT NULL,
  position bigint NOT NULL,
  text text NOT NULL,
  PRIMARY KEY (artifact_id, position)
);

CREATE TABLE build_blob (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  account_id text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  filename text NOT NULL,
  sha256 text COLLATE "C" NOT NULL,
  size_bytes bigint NOT NULL,
  created_at bigint NOT NULL,
  uploaded_at bigint,
  -- Of the stored bytes.
  hash text COLLATE "C",
  used_at bigint NOT NULL
);
CREATE UNIQUE INDEX build_blob_content ON build_blob (account_id, kind, sha256);
CREATE INDEX build_blob_hash ON build_blob (hash) WHERE hash IS NOT NULL;
CREATE INDEX build_blob_used ON build_blob (used_at);

-- Which builds and releases name a blob.
CREATE TABLE build_blob_use (
  blob_id text COLLATE "C" NOT NULL,
  holder text COLLATE "C" NOT NULL,
  PRIMARY KEY (blob_id, holder)
);
CREATE INDEX build_blob_use_holder ON build_blob_use (holder);

-- Who builds at the moment, and for what.
CREATE TABLE builder (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  targets text NOT NULL,
  base_images text NOT NULL,
  until bigint NOT NULL
);
