/** The clients that are made from the specification, against a service: what TypeScript and Python are told is the same. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { AtelierError, connect, getHealth, listJobs, postJobs } from 'atelier/client'
import { readSecretText, signMessage } from '../../lib/standard-webhooks.ts'
import { startTestApp, type TestApp } from '../support/app/start-app.ts'
import { node } from '../support/clients/checked-client.ts'
import { card } from '../support/endpoints/card.ts'
import { createFakeEngine } from '../support/engines/fake-engine.ts'
import { type Given, walk } from './walk.ts'

const ADMIN_TOKEN = 'admin-token-of-this-test'
const PYTHON = process.env['ATELIER_TEST_PYTHON']
const NO_PYTHON = PYTHON === undefined ? 'set ATELIER_TEST_PYTHON to a Python, 3.9 or newer' : false
const MODULES = fileURLToPath(new URL('../../client/dist/python', import.meta.url))
const exec = promisify(execFile)

const python = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  exec(PYTHON ?? '', ['-W', 'error', ...args], {
    env: { ...env, PYTHONPATH: MODULES, PYTHONDONTWRITEBYTECODE: '1' },
  })

function sign(): Given['message'] {
  const secret = `whsec_${Buffer.alloc(32, 5).toString('base64')}`
  const body = JSON.stringify({ type: 'job.failed', timestamp: new Date().toISOString(), data: {} })
  const bytes = readSecretText(secret)
  assert.ok(bytes !== null)
  return { secret, body, headers: signMessage([bytes], { id: 'msg_1', at: new Date(), body }) }
}

const SAID = [
  ...['granted', 1, 2, 2, 'PK', 'succeeded', true, 1],
  ...[200, 'succeeded', 1, 'Hi', 422, 'invalid_input', 'string', true],
  ...[['paused'], 0, 'whsec_', 1, 'job.failed', 'webhook_refused'],
  ...['notes.txt', 'what was said', 200, null, 404, 'a walk', true, 200, 'application/json', true],
]

describe('the clients', () => {
  let service: TestApp
  before(async () => {
    service = await startTestApp({ settings: { kind: 'cloud', adminToken: ADMIN_TOKEN } })
  })
  after(() => service[Symbol.asyncDispose]())

  const given = (account: string): Given => ({
    ...{ url: service.url, adminToken: ADMIN_TOKEN, account },
    ...{ workflow: card('Hello'), message: sign() },
  })

  test('of TypeScript runs batches, events, endpoints, schedules, webhooks, files, the queue, queued calls and the admin API', async () => {
    assert.deepEqual(JSON.parse(JSON.stringify((await walk(given('walker-ts'))).map((each) => each ?? null))), SAID)
  })

  test('of Python does the same', { skip: NO_PYTHON }, async () => {
    const script = fileURLToPath(new URL('walk.py', import.meta.url))
    const { stdout } = await python([script], { GIVEN: JSON.stringify(given('walker-py')) })
    assert.deepEqual(JSON.parse(stdout), SAID)
  })
})

/** A line to a service that breaks, or answers in its place, before the first answer of it gets through. */
async function openLine(target: string, first: 'breaks' | 'busy') {
  let seen = 0
  const line = createServer((incoming, outgoing) => {
    seen++
    if (seen === 1 && first === 'busy') {
      incoming.resume()
      return outgoing.writeHead(503, { 'Retry-After': '0' }).end()
    }
    const onward = request(target + (incoming.url ?? ''), { method: incoming.method, headers: incoming.headers })
    incoming.pipe(onward)
    onward.on('response', (answer) => {
      if (seen === 1 && first === 'breaks') {
        answer.resume().on('end', () => outgoing.destroy())
        return
      }
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(outgoing)
    })
  })
  await new Promise<void>((resolve) => line.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(line.address() as AddressInfo).port}`,
    count: () => seen,
    async [Symbol.asyncDispose]() {
      line.closeAllConnections()
      await new Promise((resolve) => line.close(resolve))
    },
  }
}

const ONCE = { '1': node('FakeSave', { text: 'once' }) }

const PYTHON_SUBMIT = `import json, os
from atelier_client import AtelierError, Client
client = Client(os.environ["URL"])
try:
    print(json.dumps([client.post_jobs(body={"workflow": json.loads(os.environ["WORKFLOW"])})["id"], None]))
except AtelierError as error:
    print(json.dumps([error.details["job_id"], error.code]))
`

const SUBMITS: readonly (readonly [string, string | false, (url: string) => Promise<readonly (string | null)[]>])[] = [
  [
    'TypeScript',
    false,
    async (url) => {
      try {
        return [(await postJobs(connect({ baseUrl: url }), { body: { workflow: ONCE } })).id, null]
      } catch (error) {
        assert.ok(error instanceof AtelierError)
        return [(error.details as { job_id: string }).job_id, error.code]
      }
    },
  ],
  [
    'Python',
    NO_PYTHON,
    async (url) => {
      const { stdout } = await python(['-c', PYTHON_SUBMIT], { URL: url, WORKFLOW: JSON.stringify(ONCE) })
      return JSON.parse(stdout)
    },
  ],
]

for (const [language, skip, submit] of SUBMITS) {
  test(`in ${language} a submit that is repeated makes one job, and a lost answer tells which`, { skip }, async () => {
    await using service = await startTestApp({ overrides: { engine: createFakeEngine() } })
    const jobs = async () => (await listJobs(connect({ baseUrl: service.url }))).jobs.map(({ id }) => id)
    await using busy = await openLine(service.url, 'busy')
    const [first, none] = await submit(busy.url)
    assert.deepEqual([await jobs(), none, busy.count()], [[first], null, 2])
    await using broken = await openLine(service.url, 'breaks')
    const [second, code] = await submit(broken.url)
    assert.deepEqual([await jobs(), code, broken.count()], [[second, first], 'idempotency_key_reuse', 2])
  })
}

test('what is no service, or does not answer, is said so, and a caller who leaves is obeyed', async () => {
  const unreachable = connect({ baseUrl: 'http://127.0.0.1:9', attempts: 1 })
  await assert.rejects(getHealth(unreachable), { name: 'AtelierError', code: 'unreachable', status: 0 })
  const elsewhere = connect({ baseUrl: 'http://service', fetch: async () => new Response('<!doctype html>') })
  await assert.rejects(getHealth(elsewhere), { name: 'AtelierError', code: 'not_atelier', status: 200 })
  const silent = connect({
    baseUrl: 'http://service',
    attempts: 1,
    fetch: (_url, init) =>
      new Promise((_resolve, reject) => {
        const leave = () => reject(init?.signal?.reason)
        if (init?.signal?.aborted === true) leave()
        init?.signal?.addEventListener('abort', leave, { once: true })
      }),
  })
  await assert.rejects(getHealth(silent, {}, { timeoutMs: 1 }), { name: 'AtelierError', code: 'timeout' })
  await assert.rejects(getHealth(silent, {}, { signal: AbortSignal.abort(new Error('gone')) }), { message: 'gone' })
})
