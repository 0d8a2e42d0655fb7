/** The administrative commands: at a data folder that nobody holds, and through the service that does. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { startTestApp } from '../support/app/start-app.ts'
import { ADMIN_TOKEN, startShared } from '../support/app/start-shared.ts'
import { runAtelier } from '../support/cli/atelier.ts'
import { runInProcess } from '../support/cli/in-process.ts'

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
    assert.deepEqual([wrong.code, wrong.stdout], [2, ''])
    assert.match(wrong.stderr, /denyModels/)
  })

  test('what is refused is one line and an exit code', async () => {
    const cases: [string[], number, RegExp][] = [
      [['accounts', 'create', 'NO'], 2, /^atelier: id must have .*\n$/],
      [['accounts', 'show', 'nobody'], 1, /^atelier: there is no account with this id\n$/],
      [['accounts', 'create', 'x', '--limit', 'streams'], 2, /^atelier: --limit "streams" is not name=value.*\n$/],
      [['keys', 'create'], 2, /^atelier: required option '--account <id>' not specified\n$/],
      [['credits', 'grant', 'team-a'], 2, /^atelier: how much\?.*\n$/],
      // Wrong values are answered with the right ones.
      [['accounts', 'create', 'x', '--tier', 'gold'], 2, /^atelier: tier must be one of free, standard, pro\n$/],
      [['accounts', 'update', 'team-a', '--status', 'gone'], 2, /status must be one of active, suspended\n$/],
      [['accounts', 'update', 'team-a', '--subscription', 'x'], 2, /must be one of active, inactive\n$/],
      [['accounts', 'create', 'x', '--limit', 'strems=3'], 2, /"strems".*concurrentJobs, .*streams, .*\n$/],
      [['accounts', 'create', 'x', '--limit', 'streams=-1'], 2, /limits\.streams must be >= 0\n$/],
      [['keys', 'create', '--account', 'team-a', '--scopes', 'jobs'], 2, /must be one of jobs:read, jobs:write, .*\n$/],
      [['deployments', 'create', 'other', '--workers', 'auto'], 2, /--workers must be a whole number.*\n$/],
    ]
    for (const [args, code, message] of cases) {
      const result = await atFolder(...args)
      assert.deepEqual([result.code, result.stdout], [code, ''], args.join(' '))
      assert.match(result.stderr, message)
    }
  })
})

describe('credit', () => {
  const amounts: [string, RegExp][] = [
    ['-1', /above zero.*atelier credits take/],
    ['0', /above zero/],
    ['-0', /above zero/],
    ['NaN', /25 or 0\.50/],
    ['1e3', /25 or 0\.50/],
    ['', /25 or 0\.50/],
    ['0.0000001', /25 or 0\.50/],
    ['99999999999', /25 or 0\.50/],
  ]

  test('an amount that is none, nothing, below zero or too fine is refused and changes nothing', async () => {
    assert.equal((await atFolder('accounts', 'create', 'payer')).code, 0)
    for (const [amount, words] of amounts) {
      const { code, stdout, stderr } = await atFolder('credits', 'grant', 'payer', `--usd=${amount}`)
      assert.deepEqual([code, stdout], [2, ''], amount)
      assert.match(stderr, words)
      assert.equal(stderr.split('\n').length, 2)
    }
    for (const micros of ['-1', '0', '9999999999999999'])
      assert.equal((await atFolder('credits', 'grant', 'payer', `--micros=${micros}`)).code, 2, micros)
    assert.equal((await atFolder('credits', 'grant', 'payer', '--usd', '1', '--micros', '5')).code, 2)
    const { stdout } = await atFolder('credits', 'show', 'payer')
    assert.match(stdout, /no entries/)
  })

  test('what was granted is taken back by a command of its own, in its own word', async () => {
    assert.equal((await atFolder('accounts', 'create', 'giver')).code, 0)
    assert.equal((await atFolder('credits', 'grant', 'giver', '--usd', '$3')).code, 0)
    const taken = await atFolder('credits', 'take', 'giver', '--usd', '1.25', '--id', 'once')
    assert.equal(taken.stdout, 'taken back: $1.75 available, $0.00 held\n', taken.stderr)
    const again = await atFolder('credits', 'take', 'giver', '--usd', '1.25', '--id', 'once')
    assert.match(again.stdout, /made before.*\$1\.75 available/)
    assert.equal((await atFolder('credits', 'take', 'giver', '--usd=-1')).code, 2)
    const statement = await atFolder('credits', 'statement', 'giver')
    assert.match(statement.stdout, /^added +\$3\.00\ntaken back +\$1\.25\n/m, statement.stderr)
    assert.match(
      statement.stdout,
      /^closing +\$1\.75, of which \$0\.00 are held for 0 jobs and calls\n\nnothing was charged$/m,
    )
    const table = await atFolder('credits', 'statement', 'giver', '--csv')
    assert.match(table.stdout, /\ncredit taken back,,,,,,-1\.25\nclosing balance,,,,,,1\.75\nheld of it,,,,,0,0\.00\n$/)
    assert.equal((await atFolder('credits', 'statement', 'giver', '--month', 'now')).code, 2)
    const events = path.join(dataDir, 'usage.jsonl')
    assert.equal((await atFolder('credits', 'events', '--file', events)).stdout, '0 events added\n')
    assert.equal((await atFolder('credits', 'events', '--after', '5')).stdout, 'next: 5\n')
    assert.equal((await atFolder('credits', 'events', '--after', 'x')).code, 2)
    assert.equal((await atFolder('credits', 'events', '--after', '5', '--file', events)).code, 2)
    assert.equal((await atFolder('credits', 'statement', 'giver', '--csv', '--json')).code, 2)
  })
})

test('tiers come from a file without any other setting', async () => {
  const tiers = path.join(dataDir, 'tiers.json')
  writeFileSync(tiers, '{"gold": {"concurrentJobs": 7}}')
  const made = await atFolder('accounts', 'create', 'rich', '--tier', 'gold', '--tiers', tiers)
  assert.equal(made.code, 0, made.stderr)
  assert.match(made.stdout, /^running +0 of 7$/m)
  const wrong = await atFolder('accounts', 'create', 'poor', '--tier', 'lead', '--tiers', tiers)
  assert.deepEqual([wrong.code, wrong.stderr], [2, 'atelier: tier must be one of gold\n'])
})

describe('through the service that holds the folder', () => {
  test('it is found by the folder alone, whatever its port', async () => {
    await using app = await startShared()
    const folder = app.service.dataDir
    const file = path.join(folder, 'service.json')
    assert.equal(statSync(file).mode & 0o777, 0o600)
    assert.ok(!readFileSync(file, 'utf8').includes(ADMIN_TOKEN))
    const env = { ATELIER_ADMIN_TOKEN: ADMIN_TOKEN }
    const made = await runInProcess(['accounts', 'create', 'team-c', '--data-dir', folder], { env, cwd: dataDir })
    assert.equal(made.code, 0, made.stderr)
    assert.equal((await app.admin('GET', '/accounts/team-c')).status, 200)
    const workflow = path.join(dataDir, 'hello.json')
    writeFileSync(workflow, '{}')
    const run = await runInProcess(['run', workflow, '--data-dir', folder], { cwd: dataDir })
    assert.deepEqual([run.code, /credential|key/.test(run.stderr)], [1, true], run.stderr)
  })

  test('what a service that was killed left behind misleads nobody', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'atelier-admin-'))
    try {
      const stale = JSON.stringify({ url: 'http://127.0.0.1:1', pid: process.pid, host: 'elsewhere' })
      assert.equal((await runInProcess(['accounts', 'list', '--data-dir', folder], { cwd: folder })).code, 0)
      writeFileSync(path.join(folder, 'service.json'), stale)
      const list = await runInProcess(['accounts', 'list', '--data-dir', folder], { cwd: folder })
      assert.equal(list.code, 0, list.stderr)
      writeFileSync(path.join(folder, 'service.json'), 'no JSON at all')
      const env = { ATELIER_ADMIN_TOKEN: ADMIN_TOKEN }
      const settings = { kind: 'cloud', adminToken: ADMIN_TOKEN, mountPrefix: '/under' }
      await using service = await startTestApp({ dataDir: folder, settings })
      const found = await runInProcess(['accounts', 'list', '--data-dir', folder], { env, cwd: folder })
      assert.equal(found.code, 0, found.stderr)
      await service.app[Symbol.asyncDispose]()
      assert.equal(existsSync(path.join(folder, 'service.json')), false)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

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
    assert.match(
      missing.stderr,
      /a service holds the data folder .*give its admin token with --admin-token or in ATELIER_ADMIN_TOKEN/,
    )
    const wrong = await runInProcess(['accounts', 'list', ...url, '--admin-token', 'wrong'], { cwd: dataDir })
    assert.deepEqual([wrong.code, wrong.stdout], [1, ''])
    assert.match(wrong.stderr, /admin token is required/)
    assert.ok(!wrong.stderr.includes('wrong'))
  })
})

test('a pool and an account are paused and resumed, and a waiting job is moved, by one command each', async () => {
  await using app = await startShared()
  const ada = await app.account('ada')
  const at = (...args: string[]) => {
    return runInProcess([...args, '--url', app.url, '--admin-token', ADMIN_TOKEN], { cwd: dataDir })
  }
  assert.equal((await at('queue', 'status')).stdout, 'nothing is paused\n')
  const paused = await at('queue', 'pause', '--pool', 'default', '--reason', 'new drivers')
  assert.equal(paused.code, 0, paused.stderr)
  assert.match(paused.stdout, /^pool +default +\S+ +new drivers$/m)
  assert.equal((await at('queue', 'pause', '--account', 'ada')).code, 0)
  const body = JSON.stringify({ workflow: { '1': { class_type: 'FakeSave', inputs: { text: 'one' } } } })
  const submit = async () => (await ada.call('/api/v2/jobs', { method: 'POST', body })).json.id as string
  const [, second] = [await submit(), await submit()]
  const moved = await at('jobs', 'move', second, '--front', '--not-before', new Date(Date.now() + 60_000).toISOString())
  assert.equal(moved.code, 0, moved.stderr)
  assert.match(moved.stdout, /^priority +1$/m)
  assert.match((await at('jobs', 'move', second, '--now', '--priority', '4')).stdout, /^position +1$/m)
  const canceled = await at('jobs', 'cancel', second, '--json')
  assert.deepEqual(JSON.parse(canceled.stdout), { id: second, account_id: 'ada', status: 'canceled' })
  const wrong = await at('queue', 'pause', '--pool', 'nowhere', '--json')
  assert.notEqual(wrong.code, 0)
  assert.match(JSON.parse(wrong.stdout).error.message, /names no pool/)
  assert.match(wrong.stderr, /names no pool/)
  await at('queue', 'resume', '--pool', 'default')
  assert.equal((await at('queue', 'resume', '--account', 'ada')).stdout, 'nothing is paused\n')
})

test('nodes lists the process that holds the data folder, and none at a folder that nobody holds', async () => {
  await using service = await startTestApp({ settings: { adminToken: ADMIN_TOKEN } })
  const { dataDir: cwd } = service
  const listed = await runInProcess(['nodes', '--data-dir', cwd, '--admin-token', ADMIN_TOKEN], { cwd })
  assert.equal(listed.code, 0, listed.stderr)
  const [head, row, ...others] = listed.stdout.trimEnd().split('\n')
  assert.match(head, /^node +state +role +version +host +address +seen +workers +holds$/)
  assert.match(row, /^[0-9a-f]{8} +alive +all +test +\S+ +http:\/\/127\.0\.0\.1:\d+ +0 s ago +default \d+ +/)
  assert.deepEqual(others, [])
  const nobody = await runInProcess(['nodes', '--data-dir', dataDir], { cwd: dataDir })
  assert.match(nobody.stdout, /^no process is known/)
})
