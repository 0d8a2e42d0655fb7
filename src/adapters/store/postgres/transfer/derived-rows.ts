/** What follows from the records of a database and is kept beside them: made anew after all records were written. */

const nextOf = (sequence: string, newest: string) => `SELECT setval(${sequence}, greatest(1, (${newest})))`
const serial = (table: string, column: string) => `pg_get_serial_sequence('${table}', '${column}')`
const newestOf = (table: string, column: string) => `SELECT coalesce(max(${column}), 0) FROM ${table}`

/** Run in one transaction, in this order. Running them twice is the same as once. */
export const DERIVE: readonly string[] = [
  nextOf(
    serial('job', 'seq'),
    'SELECT coalesce(max(seq), 0) FROM (SELECT seq FROM job UNION ALL SELECT seq FROM job_done) AS jobs',
  ),
  nextOf(
    `'asset_seq'`,
    'SELECT coalesce(max(seq), 0) FROM (SELECT seq FROM asset UNION ALL SELECT seq FROM output) AS records',
  ),
  nextOf(`'claim_turn'`, newestOf('account_load', 'served')),
  nextOf(serial('ledger_entry', 'seq'), newestOf('ledger_entry', 'seq')),
  nextOf(serial('audit_log', 'seq'), newestOf('audit_log', 'seq')),
  nextOf(serial('user_file', 'id'), newestOf('user_file', 'id')),
  nextOf(serial('router_call', 'seq'), newestOf('router_call', 'seq')),
  nextOf(serial('webhook_delivery', 'seq'), newestOf('webhook_delivery', 'seq')),
  'DELETE FROM account_blob',
  `INSERT INTO account_blob (account_id, hash, records, size_bytes)
   SELECT account_id, hash, count(*), max(size_bytes)
   FROM (SELECT account_id, hash, size_bytes FROM asset UNION ALL SELECT account_id, hash, size_bytes FROM output) AS record
   GROUP BY account_id, hash`,
  'DELETE FROM account_storage',
  `INSERT INTO account_storage (account_id, bytes)
   SELECT account_id, sum(size_bytes) FROM (
     SELECT account_id, size_bytes FROM account_blob
     UNION ALL SELECT account_id, size_bytes FROM router_result WHERE account_id IS NOT NULL) AS kept
   GROUP BY account_id`,
]
