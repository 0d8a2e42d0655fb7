-- Keys of accounts at providers, sealed. `keys_version` rises with every change of an account's keys: a call that was opened under
-- another one is not admitted.
CREATE TABLE provider_key (
  account_id TEXT NOT NULL,
  provider TEXT NOT NULL,
  sealed BLOB NOT NULL,
  last_four TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, provider)
) STRICT, WITHOUT ROWID;
ALTER TABLE router_account ADD COLUMN keys_version INTEGER NOT NULL DEFAULT 0;
