/** The administrative commands: at a data folder that nobody holds, and through the service that does. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { runAtelier } from '../support/atelier.ts'
import { runInProcess } from '../support/in-process.ts'
import { startTestApp } from '../support/start-app.ts'
import { ADMIN_TOKEN, startShared } from '../support/start-shared.ts'

let dataDir: string
before(() => {
  dataDir = mkdtempSync(path.join(tmpdir(), 'atelier-admin-'))
})
after(() => rmSync(dataDir, { recursive: true, force: true }))

const atFolder = (...args: string[]) => runInProcess([...args, '--data-dir', dataDir], { cwd: dataDir })

describe('at the data folder', () => {
  test('an account, a key, credits and a deployment are made, and a service started later knows them', async () => {
    const made = await atFolder('accounts', 'create', 'team-a', '--tier', 'standard', '--limit', 'concurrentJobs=2')
    assert.equal(made.code, 0, made.stderr)
    assert.match(made.stdout, /^account +team-a\n/)
    assert.match(made.stdout, /^running +0 of 2$/m)
    const shown = await atFolder('keys', 'create', '--account', 'team-a', '--scopes', 'jobs:read, jobs:write')
    const key = /^key +(atl_\w+)$/m.exec(shown.stdout)?.[1] ?? ''
    assert.match(shown.stdout, /^scopes +jobs:read, jobs:write$/m)
    const granted = await atFolder('credits', 'grant', '--account', 'team-a', '--usd', '2.5')
    assert.equal(granted.stdout, 'granted: $2.50 available, $0.00 held\n')
    assert.equal((await atFolder('deployments', 'create', 'demo', '--workers', '1')).code, 0)
    // Once as a process of its own, which must also end by itself.
    const check = await runAtelier(['credits', 'check', '--data-dir', dataDir])
    assert.deepEqual([check.code, check.stdout], [0, 'everything adds up: 1 entries and 0 open holds of 1 accounts\n'])
    const { app } = await startTestApp({ dataDir, settings: { kind: 'cloud' } })
    const headers = { authorization: `Bearer ${key}` }
    assert.equal((await fetch(`${app.url}/api/v2/jobs`, { headers })).status, 200)
    assert.equal((await fetch(`${app.url}/deployment/demo/api/v2/jobs`, { headers })).status, 200)
    const [line] = await app.store.audit.list({ limit: 1, before: null, subject: 'demo' })
    assert.match(line.actor, / at the data folder$/)
    await app[Symbol.asyncDispose]()
  })

  test('the models of an account are set as lists, and taken back', async () => {
    const models = async (...args: string[]) => {
      const { code, stdout, stderr } = await atFolder('accounts', ...args)
      assert.equal(code, 0, stderr)
      return /^models +(.+)$/m.exec(stdout)?.[1]
    }
    const denied = await models('create', 'choosy', '--deny-models', 'bfl/*, kling/v2')
    assert.equal(denied, 'all, but not bfl/*, kling/v2')
    assert.equal(await models('update', 'choosy', '--allow-models', 'bfl/*'), 'only bfl/*, but not bfl/*, kling/v2')
    assert.equal(await models('update', 'choosy', '--deny-models', 'none'), 'only bfl/*')
    assert.equal(await models('update', 'choosy', '--limit', 'allowModels=[]'), 'none')
    assert.equal(await models('update', 'choosy', '--allow-models', 'all'), 'all')
    const wrong = await atFolder('accounts', 'update', 'choosy', '--deny-models', 'bfl')
    assert.deepEqual([wrong.code, wrong.stdout], [1, ''])
    assert.match(wrong.stderr, /denyModels/)
  })

  test('what is refused is one line and an exit code', async () => {
    const cases: [string[], number, RegExp][] = [
      [['accounts', 'create', 'NO'], 1, /^atelier: id must have .*\n$/],
      [['accounts', 'show', 'nobody'], 1, /^atelier: there is no account with this id\n$/],
      [['accounts', 'create', 'x', '--limit', 'streams'], 2, /^atelier: --limit "streams" is not name=value.*\n$/],
      [['keys', 'create'], 2, /^atelier: required option '--account <id>' not specified\n$/],
      [['credits', 'grant', 'team-a'], 2, /^atelier: how much\?.*\n$/],
    ]
    for (const [args, code, message] of cases) {
      const result = await atFolder(...args)
      assert.deepEqual([result.code, result.stdout], [code, ''], args.join(' '))
      assert.match(result.stderr, message)
    }
  })
})

describe('through the service that holds the folder', () => {
  test('the same commands ask its admin API, and say what is missing', async () => {
    await using app = await startShared()
    const env = { ATELIER_ADMIN_TOKEN: ADMIN_TOKEN }
    const url = ['--url', app.url]
    const made = await runInProcess(['accounts', 'create', 'team-b', '--json', ...url], { env, cwd: dataDir })
    assert.equal(JSON.parse(made.stdout).id, 'team-b', made.stderr)
    const list = await runInProcess(['accounts', 'list', ...url], { env, cwd: dataDir })
    assert.match(list.stdout, /^id +name +tier +status +created\nteam-b +team-b +free +active +2/)
    const missing = await runInProcess(['accounts', 'list', '--data-dir', app.service.dataDir], { cwd: dataDir })
    assert.deepEqual([missing.code, missing.stdout], [2, ''])
    assert.match(missing.stderr, /a service holds the data folder .*set ATELIER_ADMIN_TOKEN/)
    const wrong = await runInProcess(['accounts', 'list', ...url, '--admin-token', 'wrong'], { cwd: dataDir })
    assert.deepEqual([wrong.code, wrong.stdout], [1, ''])
    assert.match(wrong.stderr, /admin token is required/)
    assert.ok(!wrong.stderr.includes('wrong'))
  })
})
