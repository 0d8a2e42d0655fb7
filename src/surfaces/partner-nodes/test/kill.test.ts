/** The real command, killed without warning while a node follows its task: nothing is made or charged a second time. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { addPaidAccount } from '../../../../test/support/app/paid-account.ts'
import { type SpawnedServer, spawnServer } from '../../../../test/support/app/spawn-server.ts'
import { bflFake } from '../../../../test/support/providers/fake-providers/bfl.ts'
import { startFakeProvider } from '../../../../test/support/providers/fake-providers/fake-card.ts'
import { openSqliteStore } from '../../../adapters/store/sqlite/open-sqlite-store.ts'

const CREDIT = 1_000_000

test('a service that is killed between submit and collect charges the call once, and the node gets its picture', async () => {
  await using stack = new AsyncDisposableStack()
  const fake = stack.use(await startFakeProvider(bflFake))
  fake.reset('no poll url')
  // Nobody finds it finished before the service is killed.
  fake.pendingPolls = 1_000_000
  const dataDir = await mkdtemp(path.join(tmpdir(), 'atelier-test-'))
  stack.defer(() => rm(dataDir, { recursive: true, force: true }))
  const { key, accountId } = await addPaidAccount(dataDir, { micros: CREDIT })
  const providers = path.join(dataDir, 'providers.json')
  await writeFile(providers, JSON.stringify({ bfl: { key: bflFake.key, base_url: fake.baseUrl } }))
  const start = () =>
    spawnServer(['--data-dir', dataDir, '--kind', 'cloud', '--workers', '0'], { ATELIER_PROVIDERS: providers })
  const ask = ({ url }: SpawnedServer, where: string, init: RequestInit = {}) =>
    fetch(url + where, { ...init, headers: { 'x-api-key': key, 'content-type': 'application/json' } })

  const first = stack.use(await start())
  const submitted = await ask(first, '/proxy/bfl/flux-2-pro/generate', {
    method: 'POST',
    body: JSON.stringify({ prompt: 'a cat', width: 1024, height: 1024 }),
  })
  assert.equal(submitted.status, 200, await submitted.clone().text())
  const { id } = (await submitted.json()) as { id: string }
  await first.killNow()

  const second = stack.use(await start())
  const where = `/proxy/bfl/get_result?id=${id}`
  fake.pendingPolls = 0
  const done = (await (await ask(second, where)).json()) as { status: string }
  assert.equal(done.status, 'Ready')
  // What is under way may end before the service does.
  await second.terminate()
  await using store = await openSqliteStore({ directory: dataDir })
  const balance = await store.ledger.balance(accountId)
  assert.equal(balance?.held, 0)
  const charges = await store.ledger.entries(accountId, { limit: 10, before: null, kinds: ['settle'] })
  assert.equal(charges.length, 1)
  assert.ok((balance?.available ?? CREDIT) < CREDIT)
  assert.equal(fake.generations, 1)
})
