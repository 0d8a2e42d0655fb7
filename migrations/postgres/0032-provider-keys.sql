-- phase: expand
-- Keys of accounts at providers, sealed. `keys_version` rises with every change of an account's keys: a call that was opened under
-- another one is not admitted.
CREATE TABLE provider_key (
  account_id text COLLATE "C" NOT NULL,
  provider text COLLATE "C" NOT NULL,
  sealed bytea NOT NULL,
  last_four text NOT NULL,
  created_at bigint NOT NULL,
  changed_at bigint NOT NULL,
  PRIMARY KEY (account_id, provider)
);
ALTER TABLE router_account ADD COLUMN keys_version bigint NOT NULL DEFAULT 0;
