/** `atelier jobs` and `atelier assets` against a whole service: what is stopped from outside as a process of its own, the rest in this one. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { startTestApp, type TestApp } from '../support/app/start-app.ts'
import { runAtelier } from '../support/cli/atelier.ts'
import { runInProcess } from '../support/cli/in-process.ts'
import { call } from '../support/clients/call.ts'

const KEY = 'the-key-of-this-test'
const HELLO = {
  1: { class_type: 'PrimitiveString', inputs: { value: 'hello' } },
  2: { class_type: 'PreviewAny', inputs: { source: ['1', 0] } },
}

const WRONG = { ...HELLO, 1: { class_type: 'PrimitiveString', inputs: {} } }

describe('atelier jobs', () => {
  let service: TestApp
  let folder: string
  before(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'atelier-jobs-'))
    service = await startTestApp({ settings: { token: KEY } })
    writeFileSync(path.join(folder, 'hello.json'), JSON.stringify(HELLO))
    writeFileSync(path.join(folder, 'note.txt'), 'a note')
  })
  after(async () => {
    await service[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  const surroundings = () => ({ cwd: folder, env: { ATELIER_BASE_URL: service.url, ATELIER_TOKEN: KEY } })
  const atelier = (...args: string[]) => runInProcess(args, surroundings())
  async function succeed(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await atelier(...args)
    assert.equal(code, 0, `${args.join(' ')}\n${stdout}${stderr}`)
    return stdout
  }
  const json = async (...args: string[]) => JSON.parse(await succeed(...args, '--json'))
  async function ask(where: string, init: { method?: string; body?: object } = {}) {
    const headers = { authorization: `Bearer ${KEY}` }
    return call(service.url, `/api/v2${where}`, { ...init, body: init.body && JSON.stringify(init.body), headers })
  }
  /** One that waits until somebody cancels it. */
  async function hold(metadata = {}): Promise<string> {
    const body = { workflow: HELLO, metadata, not_before: new Date(Date.now() + 3_600_000).toISOString() }
    return (await ask('/jobs', { method: 'POST', body })).json.id
  }

  test('what a run made is listed, shown, fetched and made again with another input', async () => {
    const { id, outputs, files } = await json('run', 'hello.json')
    assert.deepEqual(
      files,
      outputs.map(({ url }: { url: string }) => url),
    )
    assert.match(
      await succeed('jobs', 'list', '--status', 'succeeded'),
      new RegExp(`^${id} +succeeded +\\S+ +1 +-$`, 'm'),
    )
    assert.match(
      await succeed('jobs', 'show', id),
      /^status +succeeded\n[\s\S]*\noutput +asset +bytes +address\n\S+\.txt /m,
    )
    const [file] = (await json('jobs', 'download', id, '--out', 'got')).files
    assert.equal(readFileSync(file, 'utf8'), 'hello')
    const again = await json('jobs', 'rerun', id, '-i', '1.value=bye', '--out', 'got')
    assert.deepEqual([again.status, readFileSync(again.files[0], 'utf8')], ['succeeded', 'bye'])
    assert.equal((await ask(`/jobs/${again.id}/workflow`)).json.workflow[1].inputs.value, 'bye')
    assert.equal(await succeed('jobs', 'watch', id), `${files[0]}\n`)
    const { stdout } = await atelier('jobs', 'logs', id)
    assert.match(stdout, /^Prompt executed in \S+ seconds\n$/)
  })

  test('many are counted, canceled, run again and fetched by what they have in common', async () => {
    const held = [await hold({ stack: 'one' }), await hold({ stack: 'one' }), await hold({ stack: 'two' })]
    const stack = ['--metadata', 'stack=one']
    assert.equal(await succeed('jobs', 'many', 'cancel', ...stack, '--dry-run'), '2 jobs\n')
    assert.match(await succeed('jobs', 'many', 'prioritize', '7', ...stack), /^prioritize \S+ is done: 2 of 2 jobs\n$/)
    assert.equal((await ask(`/jobs/${held[1]}`)).json.priority, 7)
    assert.match(await succeed('jobs', 'many', 'cancel', ...stack), /is done: 2 of 2 jobs\n$/)
    assert.equal((await ask(`/jobs/${held[2]}`)).json.status, 'queued')
    const again = await json('jobs', 'many', 'rerun', ...stack, '--status', 'canceled')
    assert.deepEqual([again.done, again.state], [2, 'done'])
    const id = (await succeed('jobs', 'many', 'cancel', '--all', '--detach')).trim()
    await succeed('jobs', 'many', 'stop', id)
    assert.match(await succeed('jobs', 'many', 'show', id), new RegExp(`^cancel ${id} is (done|stopped): `))
    const [line, file] = (await succeed('jobs', 'many', 'download', '--status', 'succeeded', '-o', 'many')).split('\n')
    assert.match(line ?? '', /^download \S+ is done: /)
    assert.equal(
      readFileSync(file ?? '')
        .subarray(0, 2)
        .toString(),
      'PK',
    )
    const nothing = await atelier('jobs', 'many', 'cancel')
    assert.deepEqual([nothing.code, /say which jobs/.test(nothing.stderr)], [2, true], nothing.stderr)
  })

  test('--json is the object of the API, of a refusal its error', async () => {
    const id = await hold({ project: 'cards' })
    assert.deepEqual(await json('jobs', 'show', id), (await ask(`/jobs/${id}`)).json)
    const filter = ['--metadata', 'project=cards', '--status', 'queued', '--limit', '1']
    const listed = await ask('/jobs?status=queued&limit=1&metadata%5Bproject%5D=cards')
    assert.deepEqual(await json('jobs', 'list', ...filter), listed.json)
    const unknown = await atelier('jobs', 'show', id.replace(/^./, 'f'), '--json')
    assert.deepEqual([unknown.code, JSON.parse(unknown.stdout).error.code], [1, 'not_found'])
    writeFileSync(path.join(folder, 'wrong.json'), JSON.stringify(WRONG))
    for (const args of [['run'], ['run', '--local']]) {
      const wrong = args.length > 1 ? await runInProcess([...args, 'wrong.json', '--json'], { cwd: folder }) : null
      const refused = wrong ?? (await atelier(...args, 'wrong.json', '--json'))
      assert.equal(refused.code, 1)
      assert.ok(JSON.parse(refused.stdout).error.details.node_errors[1].length > 0, args.join(' '))
      assert.match(refused.stderr, /^invalid_workflow: /)
    }
    assert.equal(await succeed('jobs', 'cancel', id), `job ${id} canceled\n`)
  })

  test('whoever stops watching is told by the exit code, and the job goes on', async () => {
    const id = await hold()
    const late = await atelier('jobs', 'watch', id, '--timeout', '200ms')
    assert.deepEqual([late.code, late.stderr.split('\n').at(-2)], [124, `atelier: the time is over; job ${id} goes on`])
    const left = await runAtelier(['jobs', 'watch', id], {
      ...surroundings(),
      onStderr: (text, child) => {
        if (text.includes('queued') && !child.killed) child.kill('SIGINT')
      },
    })
    assert.equal(left.code, 130, left.stderr)
    assert.match(left.stderr, /\natelier: stopped by SIGINT; job \S+ goes on\n$/)
    assert.equal((await ask(`/jobs/${id}`)).json.status, 'queued')
  })

  test('a missing token and a wrong one are named with the flag', async () => {
    const without = await runInProcess(['jobs', 'list'], { cwd: folder, env: { ATELIER_BASE_URL: service.url } })
    assert.match(
      without.stderr,
      /^unauthorized: .*\n {2}no token was given: name one with --token, or in ATELIER_TOKEN\n$/,
    )
    const wrong = await atelier('assets', 'list', '--token', 'other')
    assert.match(wrong.stderr, /\n {2}the token of --token or ATELIER_TOKEN is not one that this server knows\n$/)
    assert.deepEqual([without.code, wrong.code], [1, 1])
  })

  test('a schedule is made, shown, run by hand, paused, resumed and removed', async () => {
    const times = ['--cron', '0 6 * * *', '--time-zone', 'Europe/Berlin', '--metadata', 'team=art']
    const said = await succeed('schedules', 'create', 'morning', ...times, '--workflow', 'hello.json')
    const id = said.split(' ')[0]
    assert.match(said, /^\S+ submits for the first time at \S+T0[45]:00:00\.000Z\n$/)
    const job = (await succeed('schedules', 'run', id)).trim()
    assert.deepEqual((await json('jobs', 'show', job)).metadata, { schedule: 'morning', team: 'art' })
    assert.match(await succeed('schedules', 'show', id), new RegExp(`by hand +submitted +${job}`))
    assert.equal(await succeed('schedules', 'pause', id, '--reason', 'holidays'), `${id} is paused\n`)
    assert.match(await succeed('schedules', 'list'), new RegExp(`^${id} +morning .* a workflow +paused`, 'm'))
    assert.match(await succeed('schedules', 'resume', id), /goes on at/)
    const wrong = await atelier('schedules', 'create', 'never', '--cron', '0 0 31 2 *', '--workflow', 'hello.json')
    assert.match(wrong.stderr, /cron names a day that never comes/)
    const endpoint = ['--endpoint', 'nowhere', '-i', 'count=3', '-i', 'text=three']
    const absent = await atelier('schedules', 'create', 'calls', '--cron', '@daily', ...endpoint)
    assert.match(absent.stderr, /endpoint cannot be run/)
    assert.match((await atelier('schedules', 'create', 'none', '--cron', '@daily')).stderr, /either --endpoint or/)
    await succeed('schedules', 'remove', id)
    assert.match(await succeed('schedules', 'list'), /there are no schedules/)
  })

  test('assets are uploaded, listed, fetched and removed', async () => {
    const id = (await succeed('assets', 'upload', 'note.txt')).trim()
    assert.match(await succeed('assets', 'list'), new RegExp(`^${id} +note\\.txt +6 +text/plain `, 'm'))
    assert.equal((await json('assets', 'list')).assets[0].asset_id, id)
    const { file, size_bytes: size } = await json('assets', 'download', id, '-o', 'assets')
    assert.deepEqual([path.relative(folder, file), size], ['assets/note.txt', 6])
    assert.equal(readFileSync(file, 'utf8'), 'a note')
    assert.equal(await succeed('assets', 'remove', id), `${id} is gone\n`)
    assert.equal((await atelier('assets', 'download', id)).code, 1)
  })
})
