-- phase: expand
-- What an account keeps: the bytes of its assets and outputs, each blob once, and of the answers that were kept for it.

-- How many records an account has over a blob. The first one adds its bytes to the account's storage, the last one takes them off.
-- A row per (account, blob), so that two transactions that add records over the same bytes wait for each other, and only they.
CREATE TABLE account_blob (
  account_id text COLLATE "C" NOT NULL,
  hash text COLLATE "C" NOT NULL,
  records bigint NOT NULL,
  size_bytes bigint NOT NULL,
  PRIMARY KEY (account_id, hash)
) WITH (fillfactor = 70);
CREATE INDEX account_blob_hash ON account_blob (hash);

CREATE TABLE account_storage (
  account_id text COLLATE "C" PRIMARY KEY,
  bytes bigint NOT NULL
) WITH (fillfactor = 50);
