/** Two processes of one service on one Postgres, in one test process each with everything of its own but the database and the bytes. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pictureGraph } from '../../support/app/fleet-app.ts'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { call } from '../../support/clients/call.ts'
import { startFakeComfy } from '../../support/engines/fake-comfyui/fake-comfyui.ts'
import { createTestDatabase } from '../../support/postgres/test-database.ts'
import { waitUntil } from '../../support/wait-until.ts'

const ADMIN_TOKEN = 'a-token-of-the-operator'

async function openService() {
  await using opening = new AsyncDisposableStack()
  const database = opening.use(await createTestDatabase())
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-two-'))
  opening.defer(() => rm(dataDir, { recursive: true, force: true }))
  const fake = opening.use(await startFakeComfy({}))
  const settings = {
    database: database.url,
    secretKey: randomBytes(32).toString('hex'),
    adminToken: ADMIN_TOKEN,
    comfyui: fake.url.href,
  }
  const start = () => startTestApp({ dataDir, settings })
  const opened = opening.move()
  return { fake, start, [Symbol.asyncDispose]: () => opened.disposeAsync() }
}

async function submit({ url }: TestApp): Promise<string> {
  const body = JSON.stringify({ workflow: pictureGraph(7) })
  const answer = await call(url, '/api/v2/jobs', { method: 'POST', body })
  assert.equal(answer.status, 201, answer.text)
  return answer.json.id
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
async function until<Answer = any>(look: () => Promise<Answer>, fits: (answer: Answer) => boolean): Promise<Answer> {
  const found = await waitUntil(async () => {
    const answer = await look()
    return fits(answer) ? { answer } : null
  })
  return found.answer
}

const jobOf = async ({ url }: TestApp, id: string) => (await call(url, `/api/v2/jobs/${id}`)).json
const enginesOf = async ({ url }: TestApp) =>
  (await call(url, '/admin/v1/engines', { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } })).json.engines

test('a server that both were given is driven by one: jobs of either run there, and the other takes it over', async () => {
  await using service = await openService()
  const one = await service.start()
  const two = await service.start()
  try {
    const [driven] = await enginesOf(one)
    assert.equal(driven.state, 'ready')
    const [seen] = await until(
      () => enginesOf(two),
      ([engine]) => engine?.state === 'ready',
    )
    assert.equal(seen.driven_by, driven.driven_by, 'both say the same of it')
    assert.equal(two.app.fleet.status()[0]?.state, 'standby')
    const first = await submit(two)
    const done = await until(
      () => jobOf(two, first),
      ({ status }) => status === 'succeeded',
    )
    assert.equal(done.outputs.length, 1)
    await one.app[Symbol.asyncDispose]()
    const second = await submit(two)
    await until(
      () => jobOf(two, second),
      ({ status }) => status === 'succeeded',
    )
    assert.equal(two.app.fleet.status()[0]?.state, 'ready')
  } finally {
    await one.app[Symbol.asyncDispose]()
    await two.app[Symbol.asyncDispose]()
  }
})

test('one process does the chores of both, and the metrics say which', async () => {
  await using service = await openService()
  const one = await service.start()
  const two = await service.start()
  const leads = async ({ url }: TestApp) => {
    const { text } = await call(url, '/metrics')
    return /^atelier_housekeeping_leader (\d)$/m.exec(text)?.[1]
  }
  try {
    assert.deepEqual([await leads(one), await leads(two)], ['1', '0'])
    await one.app[Symbol.asyncDispose]()
    await until(
      () => leads(two),
      (leading) => leading === '1',
    )
  } finally {
    await one.app[Symbol.asyncDispose]()
    await two.app[Symbol.asyncDispose]()
  }
})

test('a process that starts leaves alone what another one runs', async () => {
  await using service = await openService()
  const one = await service.start()
  service.fake.hold('running')
  const id = await submit(one)
  await until(
    () => jobOf(one, id),
    ({ status }) => status === 'running',
  )
  const two = await service.start()
  try {
    const { status, attempt } = await jobOf(two, id)
    assert.equal(status, 'running', `attempt ${attempt}`)
    service.fake.release('running')
    await until(
      () => jobOf(two, id),
      (job) => job.status === 'succeeded',
    )
    assert.equal((await one.app.store.jobs.countByStatus()).succeeded, 1)
  } finally {
    await two.app[Symbol.asyncDispose]()
    await one.app[Symbol.asyncDispose]()
  }
})
