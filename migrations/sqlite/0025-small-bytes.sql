-- Outputs of a few kilobytes, beside the records that refer to them: a file of its own, its folder and their syncs cost more than
-- everything else about a short job. Larger ones are files, as before.
CREATE TABLE small_bytes (
  hash TEXT NOT NULL,
  bytes BLOB NOT NULL
) STRICT;
-- With a name: an index that belongs to its table cannot be replaced when it is damaged.
CREATE UNIQUE INDEX small_bytes_hash ON small_bytes (hash);
