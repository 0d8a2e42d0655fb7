/** Accounts as the service opens them: tiers that change while it runs, tokens that others sign, settings that are wrong. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { exportSPKI, generateKeyPair, SignJWT } from 'jose'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import { openSqliteStore } from '../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { openSharedAccounts } from '../../src/compose/open-accounts.ts'
import type { AccountsConfig } from '../../src/config/blocks/accounts-config.ts'
import { ConfigError } from '../../src/config/config-error.ts'
import { startShared } from '../support/app/start-shared.ts'

async function withFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'atelier-open-'))
  try {
    await body(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const PLAIN: AccountsConfig = { tiers: null, tiersFile: null, prices: null, jwt: null }

describe('tiers in a file', () => {
  test('count as soon as the file is read again; a broken file changes nothing', () =>
    withFolder(async (folder) => {
      const path = join(folder, 'tiers.json')
      const write = (text: string) => writeFile(path, text)
      const tiers = { only: { concurrentJobs: 1 } }
      await write(JSON.stringify(tiers))
      await using store = await openSqliteStore({ directory: join(folder, 'data'), synchronous: 'NORMAL' })
      const parts = { store, clock: systemClock, log: silentLog }
      const shared = await openSharedAccounts({ ...PLAIN, tiers, tiersFile: path }, parts)
      await shared.accounts.create({ id: 'acme', name: 'Acme', tier: null, overrides: {} })
      const chore = shared.chores.find(({ name }) => name === 'reload-tiers')
      const reload = async () => chore?.run(new AbortController().signal)
      const limit = () => shared.limitsOf('acme').concurrentJobs
      await reload()
      assert.equal(limit(), 1)
      await write(JSON.stringify({ only: { concurrentJobs: 25 } }))
      await reload()
      assert.equal(limit(), 25)
      await write('{"only": {"concurrentJobs": -1}}')
      await assert.rejects(reload(), /only: concurrentJobs must be/)
      assert.equal(limit(), 25)
      await reload()
      await write('{')
      await assert.rejects(reload())
      assert.equal(limit(), 25)
    }))

  test('a tier that vanished while nobody looked leaves its accounts readable and idle', () =>
    withFolder(async (folder) => {
      await using store = await openSqliteStore({ directory: folder, synchronous: 'NORMAL' })
      const parts = { store, clock: systemClock, log: silentLog }
      const before = await openSharedAccounts({ ...PLAIN, tiers: { gold: { concurrentJobs: 9 } } }, parts)
      await before.accounts.create({ id: 'acme', name: 'Acme', tier: 'gold', overrides: {} })
      const after = await openSharedAccounts(PLAIN, parts)
      assert.equal(after.accounts.find('acme')?.tier, 'gold')
      assert.throws(() => after.admit('acme', 'default'), /no active subscription/)
    }))

  test('tiers and prices that are wrong stop the start with one line', () =>
    withFolder(async (folder) => {
      await using store = await openSqliteStore({ directory: folder, synchronous: 'NORMAL' })
      const parts = { store, clock: systemClock, log: silentLog }
      const open = (config: Partial<AccountsConfig>) => openSharedAccounts({ ...PLAIN, ...config }, parts)
      const isLine = (pattern: RegExp) => (error: unknown) =>
        error instanceof ConfigError && pattern.test(error.message)
      await assert.rejects(open({ tiers: { free: { jobs: 1 } } }), isLine(/^tiers: free: jobs is not a limit/))
      await assert.rejects(open({ prices: { pools: { a: 1 } } }), isLine(/^prices: a must be an object/))
    }))
})

test('a token that others sign runs jobs for the account that it names', () =>
  withFolder(async (folder) => {
    const { publicKey, privateKey } = await generateKeyPair('ES256')
    const path = join(folder, 'key.pem')
    await writeFile(path, await exportSPKI(publicKey))
    await using app = await startShared({
      jwt: JSON.stringify({ keys: path, issuer: 'https://login.example', audience: 'atelier' }),
    })
    const acme = await app.account('acme')
    const sign = (subject: string, expires: string) =>
      new SignJWT({ scope: 'jobs:read jobs:write' })
        .setProtectedHeader({ alg: 'ES256' })
        .setIssuer('https://login.example')
        .setAudience('atelier')
        .setSubject(subject)
        .setExpirationTime(expires)
        .sign(privateKey)
    const authorization = `Bearer ${await sign('acme', '1h')}`
    const body = JSON.stringify({ workflow: { '1': { class_type: 'FakeSource', inputs: {} } } })
    const submitted = await acme.call('/api/v2/jobs', { method: 'POST', body, headers: { authorization } })
    assert.equal(submitted.status, 201)
    const jobPath = `/api/v2/jobs/${submitted.json.id}`
    assert.equal((await acme.call(jobPath)).status, 200, 'its key sees the same job')
    assert.equal((await acme.call(jobPath, { headers: { authorization } })).status, 200)
    assert.equal((await acme.call('/api/v2/assets', { method: 'POST', headers: { authorization } })).status, 403)
    const refused: readonly [string, number, string][] = [
      [await sign('acme', '-1h'), 401, 'unauthorized'],
      [await sign('nobody', '1h'), 403, 'forbidden'],
      ['a.b.c', 401, 'unauthorized'],
    ]
    for (const [token, status, code] of refused) {
      const answer = await acme.call(jobPath, { headers: { authorization: `Bearer ${token}` } })
      assert.deepEqual([answer.status, answer.json.error.code], [status, code])
    }
  }))
