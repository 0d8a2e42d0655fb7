-- How many endpoints an account has is counted without reading them.
CREATE INDEX endpoint_kept ON endpoint (account_id, is_removed);
