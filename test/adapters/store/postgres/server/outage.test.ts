/** A server that goes away: its operations are refused by one word meanwhile, and the store needs no new start afterwards. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../../../../lib/log.ts'
import { openPostgresStore } from '../../../../../src/adapters/store/postgres/open-postgres-store.ts'
import { isStoreAway } from '../../../../../src/domain/errors.ts'
import { startPostgres } from '../../../../support/postgres/postgres-server.ts'

test('operations are refused while the server is away, and answered once it is back', async () => {
  await using server = await startPostgres()
  const said: string[] = []
  const say = (_: object, message: string) => void said.push(message)
  await using store = await openPostgresStore({ url: server.url, log: { ...silentLog, info: say, error: say } })
  await store.changeMeta('colour', () => 'red')
  await server.stop('immediate')
  const operations = [
    () => store.readMeta('colour'),
    () => store.changeMeta('colour', () => 'green'),
    () => store.ensureMeta('shape', () => 'round'),
  ]
  for (const operation of operations) await assert.rejects(operation(), isStoreAway)
  for (const operation of operations) await assert.rejects(operation(), isStoreAway)
  await server.start()
  assert.equal(await store.readMeta('colour'), 'red')
  await store.changeMeta('colour', () => 'blue')
  assert.equal(await store.readMeta('colour'), 'blue')
  assert.deepEqual(
    said.map((message) => message.split(';')[0]),
    ['the database does not answer', 'the database answers again'],
  )
})
