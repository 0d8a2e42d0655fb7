/** No statement walks a table that grows: every plan finds its rows through an index, whatever the backlog. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { loadMigrations } from '../../../../src/adapters/store/migration-files.ts'
import { applyMigrations, MIGRATIONS_DIRECTORY } from '../../../../src/adapters/store/sqlite/database/migrations.ts'
import { prepareReadOperations } from '../../../../src/adapters/store/sqlite/operations/read-operations.ts'
import { prepareWriteOperations } from '../../../../src/adapters/store/sqlite/operations/write-operations.ts'
import { listStatements } from '../../../../src/adapters/store/statements/statement.ts'
import { START } from '../../../contracts/store-under-test.ts'

/** Notes every statement that is prepared. */
class WatchedDatabase extends DatabaseSync {
  readonly statements = new Set<string>()

  override prepare(sql: string) {
    this.statements?.add(sql)
    return super.prepare(sql)
  }
}

// Accounts, deployments, processes and engines are few or walked through an index; held jobs and running calls are never more than
// there are workers and slots.
const MAY_BE_WALKED = [
  /^SCAN (credit_)?account/,
  /^SCAN (deployment|node|singleton|engine|engine_catalog|builder)( USING .*)?$/,
  /^SCAN job USING INDEX job_lease$/,
  /^SCAN router_call USING INDEX router_call_running$/,
  // Recipes are few: an operator's search looks at those of all accounts.
  /^SCAN job_recipe$/,
  // Asked for when a release is removed, and when folders of releases are tidied; those that are up are few.
  /^SCAN (released_deployment|revision)( USING .*)?$/,
  // An account and a pool each have one row, and those of the last day are kept.
  /^SCAN fair_share/,
  // Those that are at work: an account has few at a time.
  /^SCAN bulk_action USING INDEX bulk_action_working$/,
  // What is paused by hand.
  /^SCAN queue_pause/,
  // Lists that a statement is given.
  /^SCAN \w+ VIRTUAL/,
  // The names of the tables and of their columns, read once when a store is opened.
  /^SCAN (kept|field VIRTUAL TABLE INDEX 0:)$/,
]
// What a statement itself puts together: the heads of lanes, what engines offer, and the keys and values of labels,
// titles and types of outputs.
const IS_NO_TABLE =
  /^SCAN (CONSTANT ROW|\(subquery|head|lane|offer|fit|near|measured|bound|pick|name|found|each_one|beginning|kind|changed|used|input|counted|held|moved|mine|charge|edge|dearest|account_id|ending|change|given|gone|lease|back|listed|row|waiting|pending|recent|entry|walked|latest|dropped)/

test('every statement finds its rows through an index', () => {
  const database = new WatchedDatabase(':memory:')
  applyMigrations(database, loadMigrations(MIGRATIONS_DIRECTORY), START)
  database.statements.clear()
  prepareWriteOperations(database)
  prepareReadOperations(database)
  // What walks everything on purpose, asked for by an operator: a check of the ledger, and how many jobs wait. Whether their modules
  // are loaded depends on the tests before this one.
  const others = listStatements().filter(({ name }) => !/^(ledgerCheck\..*|deployments\.count)$/.test(name))
  for (const { compiled } of others)
    for (const form of [compiled.sqlite, compiled.sqlite?.alone]) if (form) database.statements.add(form.text)
  const statements = [...database.statements].filter((sql) => !sql.trim().startsWith('PRAGMA'))
  assert.ok(statements.length > 50)
  const walks = statements.flatMap((sql) => {
    const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all()
    const details = plan.map(({ detail }) => String(detail))
    // Whatever such a part of the statement reads has lines of its own.
    const ownParts = details.flatMap((detail) => /^(?:CO-ROUTINE|MATERIALIZE) (\w+)$/.exec(detail)?.[1] ?? [])
    return details
      .filter((detail) => detail.startsWith('SCAN') && !ownParts.includes(detail.slice('SCAN '.length)))
      .filter((detail) => ![...MAY_BE_WALKED, IS_NO_TABLE].some((each) => each.test(detail)))
      .map((detail) => `${detail}: ${sql}`)
  })
  assert.deepEqual(walks, [])
  database.close()
})
