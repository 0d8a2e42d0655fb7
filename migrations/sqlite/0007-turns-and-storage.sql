-- The number of the latest claim that came to this account: among accounts that are equally busy, the next claim goes to the one
-- that has waited longest for a turn, however many jobs the others have waiting.
ALTER TABLE account ADD COLUMN served INTEGER NOT NULL DEFAULT 0;

-- What an account keeps: the bytes of its assets, each blob once, and of the answers that were kept for it. Always equals the rows
-- that it counts.
CREATE TABLE account_storage (
  account_id TEXT PRIMARY KEY,
  bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

ALTER TABLE router_result ADD COLUMN account_id TEXT;
UPDATE router_result SET account_id = (SELECT account_id FROM router_call WHERE router_call.seq = router_result.seq);

INSERT INTO account_storage (account_id, bytes)
SELECT account_id, sum(size_bytes) FROM (
  SELECT DISTINCT account_id, hash, size_bytes FROM asset
  UNION ALL
  SELECT account_id, NULL, size_bytes FROM router_result WHERE account_id IS NOT NULL)
GROUP BY account_id;

CREATE TRIGGER asset_stored AFTER INSERT ON asset
WHEN NOT EXISTS (SELECT 1 FROM asset WHERE hash = NEW.hash AND account_id = NEW.account_id AND seq <> NEW.seq)
BEGIN
  INSERT INTO account_storage (account_id, bytes) VALUES (NEW.account_id, NEW.size_bytes)
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER asset_removed AFTER DELETE ON asset
WHEN NOT EXISTS (SELECT 1 FROM asset WHERE hash = OLD.hash AND account_id = OLD.account_id)
BEGIN
  UPDATE account_storage SET bytes = bytes - OLD.size_bytes WHERE account_id = OLD.account_id;
END;

-- Before, because a result may replace an earlier one without a delete.
CREATE TRIGGER result_stored BEFORE INSERT ON router_result WHEN NEW.account_id IS NOT NULL
BEGIN
  INSERT INTO account_storage (account_id, bytes)
  VALUES (NEW.account_id,
    NEW.size_bytes - coalesce((SELECT size_bytes FROM router_result WHERE seq = NEW.seq AND account_id IS NOT NULL), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER result_removed AFTER DELETE ON router_result WHEN OLD.account_id IS NOT NULL
BEGIN
  UPDATE account_storage SET bytes = bytes - OLD.size_bytes WHERE account_id = OLD.account_id;
END;
