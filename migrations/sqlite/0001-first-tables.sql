-- Times are milliseconds since 1970. No foreign keys: every relation is written and removed in one operation, and the checks
-- would cost the submit path. What a queue poll or a status read touches is kept narrow; long texts have tables of their own.

CREATE TABLE account (
  id TEXT PRIMARY KEY,
  max_running INTEGER NOT NULL,
  max_queued INTEGER NOT NULL,
  -- Counters always equal the rows they count; `running` counts every held job, that is running and canceling.
  queued INTEGER NOT NULL DEFAULT 0,
  running INTEGER NOT NULL DEFAULT 0,
  succeeded INTEGER NOT NULL DEFAULT 0,
  canceled INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  expired INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- A claim walks only accounts that wait, the least busy first: idle accounts cost nothing.
CREATE INDEX account_waiting ON account (running, id) WHERE queued > 0;

CREATE TABLE job (
  -- Submit order. A number may come back after the newest job was removed, which changes no order.
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  pool TEXT NOT NULL,
  status TEXT NOT NULL,
  priority INTEGER NOT NULL,
  attempt INTEGER NOT NULL DEFAULT 0,
  version INTEGER NOT NULL DEFAULT 1,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  completed_at INTEGER,
  expires_at INTEGER NOT NULL,
  lease_id TEXT,
  lease_until INTEGER,
  worker_id TEXT,
  needs_extra_data INTEGER NOT NULL,
  input_count INTEGER NOT NULL,
  output_count INTEGER NOT NULL DEFAULT 0,
  outputs_reused INTEGER NOT NULL DEFAULT 0,
  -- JSON, or null for "none".
  metadata TEXT,
  progress TEXT,
  error TEXT
) STRICT;

CREATE UNIQUE INDEX job_id ON job (id);
CREATE INDEX job_queue ON job (account_id, pool, priority DESC, seq) WHERE status = 'queued';
CREATE INDEX job_lease ON job (lease_until) WHERE status IN ('running', 'canceling');
CREATE INDEX job_listing ON job (account_id, status, created_at, id);
CREATE INDEX job_deadline ON job (expires_at) WHERE status IN ('queued', 'running', 'canceling');
CREATE INDEX job_retention ON job (expires_at) WHERE status IN ('succeeded', 'failed', 'canceled');
CREATE INDEX job_grace ON job (completed_at) WHERE status = 'expired';

CREATE TABLE job_workflow (
  seq INTEGER PRIMARY KEY,
  text TEXT NOT NULL
) STRICT;

-- Inputs of jobs that have not ended: each row is a reference to a blob.
CREATE TABLE job_input (
  seq INTEGER NOT NULL,
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  hash TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  content_type TEXT NOT NULL,
  PRIMARY KEY (seq, position)
) STRICT, WITHOUT ROWID;

CREATE INDEX job_input_hash ON job_input (hash);

-- Sealed extra data of jobs that wait; the claim and every end erase it.
CREATE TABLE job_secret (
  seq INTEGER PRIMARY KEY,
  sealed BLOB NOT NULL
) STRICT;

CREATE TABLE job_output (
  seq INTEGER NOT NULL,
  position INTEGER NOT NULL,
  asset_id TEXT NOT NULL,
  node_id TEXT NOT NULL,
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  content_type TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  hash TEXT NOT NULL,
  PRIMARY KEY (seq, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE job_log (
  seq INTEGER PRIMARY KEY,
  text TEXT NOT NULL,
  truncated INTEGER NOT NULL,
  captured_at INTEGER NOT NULL,
  complete INTEGER NOT NULL
) STRICT;

-- Metadata once more, in the order of a listing, so that a filter walks only jobs that carry the pair.
CREATE TABLE job_label (
  account_id TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  job_id TEXT NOT NULL,
  PRIMARY KEY (account_id, key, value, created_at, job_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE output_number (
  account_id TEXT NOT NULL,
  folder TEXT NOT NULL,
  prefix TEXT NOT NULL,
  last INTEGER NOT NULL,
  PRIMARY KEY (account_id, folder, prefix)
) STRICT, WITHOUT ROWID;

CREATE TABLE asset (
  -- Order of the last mint: re-uploading the same bytes under the same path makes the record the newest again.
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  hash TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  content_type TEXT NOT NULL,
  file_path TEXT,
  tags TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  job_id TEXT
) STRICT;

CREATE UNIQUE INDEX asset_id ON asset (id);
CREATE INDEX asset_hash ON asset (hash, account_id, seq);
-- Uploads only: an account may have any number of outputs over the same bytes.
CREATE INDEX asset_identity ON asset (account_id, hash, file_path, tags) WHERE job_id IS NULL;
-- Each in its own index: jobs may make any number of outputs of one name, and none of them must slow down or hide an upload.
CREATE INDEX asset_upload_path ON asset (account_id, file_path, seq) WHERE job_id IS NULL AND file_path IS NOT NULL;
CREATE INDEX asset_output_path ON asset (account_id, file_path, seq) WHERE job_id IS NOT NULL AND file_path IS NOT NULL;
CREATE INDEX asset_deadline ON asset (expires_at) WHERE expires_at IS NOT NULL;

-- Blobs that may have lost their last reference, or were announced and never got one. Collection looks at nothing else.
CREATE TABLE blob_candidate (
  hash TEXT PRIMARY KEY,
  size_bytes INTEGER NOT NULL,
  since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX blob_candidate_since ON blob_candidate (since);

CREATE TABLE idempotency_key (
  account_id TEXT NOT NULL,
  key TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  job_id TEXT,
  asset_id TEXT,
  PRIMARY KEY (account_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_key_deadline ON idempotency_key (expires_at);

CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
