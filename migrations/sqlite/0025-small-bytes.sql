-- Outputs of a few kilobytes, beside the records that refer to them: a file of its own, its folder and their syncs cost more than
-- everything else about a short job. Larger ones are files, as before.
CREATE TABLE small_bytes (
  hash TEXT NOT NULL PRIMARY KEY,
  bytes BLOB NOT NULL
);
