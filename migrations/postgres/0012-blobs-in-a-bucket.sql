-- phase: expand
-- Bytes in a bucket: which object holds those of which hash.

CREATE TABLE blob (
  hash text COLLATE "C" PRIMARY KEY,
  object_key text COLLATE "C" NOT NULL,
  size_bytes bigint NOT NULL,
  -- When they were last stored or wanted again.
  since bigint NOT NULL
);
CREATE UNIQUE INDEX blob_object ON blob (object_key);

-- Objects that no hash leads to any more, until they are removed from the bucket.
CREATE TABLE blob_garbage (
  object_key text COLLATE "C" PRIMARY KEY,
  since bigint NOT NULL
);
CREATE INDEX blob_garbage_since ON blob_garbage (since);
