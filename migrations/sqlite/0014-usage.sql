-- What was charged for, so that usage adds up by model, by pool and by key. null: written before this was noted, or of no such kind:
-- a job has a pool and no model, a call a model and no pool, and a token signed elsewhere is no key.
ALTER TABLE ledger_hold ADD COLUMN pool TEXT;
ALTER TABLE ledger_hold ADD COLUMN model TEXT;
ALTER TABLE ledger_hold ADD COLUMN key_id TEXT;
ALTER TABLE ledger_entry ADD COLUMN pool TEXT;
ALTER TABLE ledger_entry ADD COLUMN model TEXT;
ALTER TABLE ledger_entry ADD COLUMN key_id TEXT;

-- Charges and refunds of all accounts by time; of no other entries.
CREATE INDEX ledger_entry_charges ON ledger_entry (at) WHERE kind IN ('settle', 'refund');
-- The calls of an account, newest first.
CREATE INDEX router_call_listing ON router_call (account_id, seq);
