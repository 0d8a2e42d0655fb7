-- Accounts that pay: who they are, what they show, what they have and what was changed for them. The hot row `account` stays
-- as narrow as it was; everything that a submit or a claim does not need stands beside it.

-- Absent for an account that is not metered (the local kind): then nothing is ever held or charged.
CREATE TABLE credit_account (
  account_id TEXT PRIMARY KEY,
  -- Sums of the ledger's books of the same names, kept with every entry.
  available INTEGER NOT NULL DEFAULT 0,
  held INTEGER NOT NULL DEFAULT 0,
  floor INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- One balanced move between the four books of an account, in micro-dollars. Nothing is ever changed or removed.
CREATE TABLE ledger_entry (
  seq INTEGER PRIMARY KEY,
  account_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  reference TEXT NOT NULL,
  granted INTEGER NOT NULL,
  available INTEGER NOT NULL,
  held INTEGER NOT NULL,
  charged INTEGER NOT NULL,
  at INTEGER NOT NULL,
  memo TEXT NOT NULL,
  CHECK (granted + available + held + charged = 0)
) STRICT;

CREATE UNIQUE INDEX ledger_entry_once ON ledger_entry (reference, kind);
CREATE INDEX ledger_entry_account ON ledger_entry (account_id, seq);
CREATE INDEX ledger_entry_period ON ledger_entry (account_id, at);

CREATE TRIGGER ledger_entry_no_update BEFORE UPDATE ON ledger_entry
BEGIN SELECT raise(ABORT, 'ledger entries are never changed'); END;
CREATE TRIGGER ledger_entry_no_delete BEFORE DELETE ON ledger_entry
BEGIN SELECT raise(ABORT, 'ledger entries are never removed'); END;

-- Holds that are open. A settled or released one is known by its entries.
CREATE TABLE ledger_hold (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  micros INTEGER NOT NULL,
  held_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX ledger_hold_account ON ledger_hold (account_id, held_at);
