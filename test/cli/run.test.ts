import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { runAtelier } from '../support/cli/atelier.ts'
import { STUB_JOB_ID, startStubServer, stubJob } from '../support/clients/stub-jobs-server.ts'

let folder: string
let workflow: string
before(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'atelier-run-'))
  workflow = path.join(folder, 'workflow.json')
  writeFileSync(
    workflow,
    '{"1":{"class_type":"LoadImage","inputs":{"image":"x.png"}},"3":{"class_type":"K","inputs":{"seed":1,"cfg":1.0}}}',
  )
  writeFileSync(path.join(folder, 'cat.png'), 'picture')
})
after(() => rmSync(folder, { recursive: true, force: true }))

const run = (url: string, ...more: string[]) =>
  runAtelier(['run', workflow, '--base-url', url, ...more], { cwd: folder })

function outputOf(url: string) {
  return { id: '1', name: '../a.txt', url: `${url}/api/v2/assets/1/content`, size_bytes: 5 }
}

describe('atelier run', () => {
  test('uploads, submits every digit, follows the stream and fetches the outputs', async () => {
    await using server = await startStubServer({
      jobs: [],
      streams: [
        [
          ['status', { status: 'running' }],
          ['progress', { value: 0.5, message: 'K 5/10' }],
          ['output', { name: 'a.txt' }],
          ['status', { status: 'succeeded' }],
        ],
      ],
    })
    server.setJob(stubJob('succeeded', { outputs: [outputOf(server.url)] }))
    const inputs = ['-i', '3.seed=18446744073709551615', '-i', '1.image=@cat.png']
    const result = await run(server.url, ...inputs, '--out', 'out', '--token', 'tok')
    assert.equal(result.code, 0, result.stderr)
    assert.equal(result.stdout, `${path.join(folder, 'out', 'a.txt')}\n`)
    assert.equal(readFileSync(path.join(folder, 'out', 'a.txt'), 'utf8'), 'bytes')
    assert.match(
      result.stderr,
      /uploading cat\.png[\s\S]*job 0199b3f4[\s\S]*running\n50% K 5\/10\noutput a\.txt\nsucceeded\n/,
    )
    const submit = server.seen.find(({ url }) => url === '/api/v2/jobs')
    assert.equal(
      submit?.body,
      '{"workflow":{"1":{"class_type":"LoadImage","inputs":{"image":{"__type":"core/ASSET","info":{"id":"a5e7-id","hash":"blake3:00","file_path":"cat.png"}}}},' +
        '"3":{"class_type":"K","inputs":{"seed":18446744073709551615,"cfg":1.0}}}}',
    )
    assert.ok(server.seen.every(({ headers }) => headers.authorization === 'Bearer tok'))
    const upload = server.seen.find(({ url }) => url === '/api/v2/assets')
    const parts = [...(upload?.body.matchAll(/name="(\w+)"/g) ?? [])].map((match) => match[1])
    assert.deepEqual(parts, ['content_type', 'file_path', 'file'])
  })

  test('polls when there is no stream, and reconnects when one breaks off', async () => {
    await using refused = await startStubServer({
      jobs: [stubJob('running', { progress: { value: 0.2 } }), stubJob('succeeded')],
    })
    const polled = await run(refused.url)
    assert.equal(polled.code, 0, polled.stderr)
    assert.match(polled.stderr, /running\n20%/)
    await using broken = await startStubServer({
      jobs: [stubJob('running'), stubJob('succeeded')],
      streams: [[['status', { status: 'running' }]], [['status', { status: 'succeeded' }]]],
    })
    const reconnected = await run(broken.url, '--json')
    assert.equal(reconnected.code, 0, reconnected.stderr)
    assert.equal(JSON.parse(reconnected.stdout).status, 'succeeded')
    assert.equal(broken.seen.filter(({ url }) => url.endsWith('/events')).length, 2)
  })

  test('waits out a full queue with the same key', async () => {
    await using server = await startStubServer({
      jobs: [stubJob('succeeded')],
      refusals: [[429, { error: { code: 'queue_full', message: 'full', details: null } }, { 'Retry-After': '1' }]],
    })
    assert.equal((await run(server.url)).code, 0)
    const keys = server.seen
      .filter(({ url }) => url === '/api/v2/jobs')
      .map(({ headers }) => headers['idempotency-key'])
    assert.equal(keys.length, 2)
    assert.equal(keys[0], keys[1])
  })

  test('exit 1 when the job fails, with its error; no control character gets through', async () => {
    const error = { code: 'node_execution_error', message: 'boom\u001b[31m\u202e', node_id: '3', class_type: 'K' }
    await using server = await startStubServer({ jobs: [stubJob('failed', { error })] })
    const result = await run(server.url)
    assert.equal(result.code, 1)
    assert.match(result.stderr, /failed in node 3 \(K\): node_execution_error: boom/)
    assert.ok(!result.stderr.includes('\u001b') && !result.stderr.includes('\u202e'))
  })

  test('exit 1 when the workflow is refused, with every error', async () => {
    const details = { node_errors: { 3: [{ field: 'seed', reason: 'missing_input' }] } }
    const body = { error: { code: 'invalid_workflow', message: 'not good', details } }
    await using server = await startStubServer({ jobs: [], refusals: [[422, body]] })
    const result = await run(server.url)
    assert.equal(result.code, 1)
    assert.equal(result.stderr, 'invalid_workflow: not good\n  node 3, input seed: missing_input\n')
  })

  test('exit 2 for a mistake in the call', async () => {
    for (const args of [
      ['-i', 'nonsense'],
      ['-i', '9.x=1'],
      ['--timeout', 'soon'],
      ['-i', '1.image=@none.png'],
    ]) {
      const result = await run('http://127.0.0.1:9', ...args)
      assert.equal(result.code, 2, args.join(' '))
      assert.equal(result.stderr.trim().split('\n').at(-1)?.startsWith('atelier: '), true, result.stderr)
    }
    assert.equal((await run('nonsense')).code, 2)
    assert.equal((await runAtelier(['run', 'none.json'], { cwd: folder })).code, 2)
  })

  test('exit 3 when nobody listens', async () => {
    const result = await run('http://127.0.0.1:9')
    assert.equal(result.code, 3)
    assert.match(result.stderr, /^atelier: cannot reach http:\/\/127\.0\.0\.1:9/)
  })

  test('Ctrl-C and a timeout cancel the job', async () => {
    const scenario = {
      jobs: [stubJob('running')],
      streams: [[['status', { status: 'running' }]]],
      holdStreams: true,
    } as const
    await using first = await startStubServer(scenario)
    const stopped = await runAtelier(['run', workflow, '--base-url', first.url], {
      cwd: folder,
      onStderr: (text, child) => {
        if (text.includes('running') && !child.killed) child.kill('SIGINT')
      },
    })
    assert.equal(stopped.code, 130, stopped.stderr)
    assert.match(stopped.stderr, new RegExp(`canceling job ${STUB_JOB_ID}[\\s\\S]*canceled`))
    await using second = await startStubServer(scenario)
    const timedOut = await run(second.url, '--timeout', '5s')
    assert.equal(timedOut.code, 124)
    assert.match(timedOut.stderr, /the time is over; canceling/)
    assert.ok(second.seen.some(({ url, method }) => method === 'POST' && url.endsWith('/cancel')))
  })
})
