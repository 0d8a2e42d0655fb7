/** kill -9 of the service between the end of a run and the verdict over its outputs: nothing is handed out, and nothing is lost. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { ADMIN_TOKEN, joinTestWorker } from '../../support/app/join-worker.ts'
import { type SpawnedServer, spawnServer } from '../../support/app/spawn-server.ts'
import { findCompileCache } from '../../support/cli/compile-cache.ts'
import { call } from '../../support/clients/call.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { ALLOW, type Moderator, startModerator } from '../../support/moderator.ts'
import { findFreePort } from '../../support/network/free-port.ts'
import { waitUntil } from '../../support/wait-until.ts'

interface Trial extends AsyncDisposable {
  readonly url: string
  readonly dataDir: string
  readonly moderator: Moderator
  /** Kills the service and starts it again at the same address. */
  killAndRestart(): Promise<void>
  submit(workflow: object): Promise<string>
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
  read(id: string): Promise<any>
}

async function startTrial(more: readonly string[]): Promise<Trial> {
  await using opening = new AsyncDisposableStack()
  const moderator = opening.use(await startModerator())
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-moderation-'))
  // The engine's own process may live a moment longer.
  opening.defer(() => rm(dataDir, { recursive: true, force: true, maxRetries: 10 }))
  const port = await findFreePort()
  const moderation = await moderator.setting({ scope: 'all', before_outputs: {} })
  const flags = ['--data-dir', dataDir, '--port', String(port), '--moderation', moderation, ...more]
  const start = () => spawnServer(flags, { ...findCompileCache(dataDir), ATELIER_ADMIN_TOKEN: ADMIN_TOKEN })
  let server: SpawnedServer = await start()
  opening.defer(() => server.killNow())
  const { url } = server
  const opened = opening.move()
  return {
    ...{ url, dataDir, moderator },
    async killAndRestart() {
      await server.killNow()
      server = await start()
    },
    submit: (workflow) =>
      waitUntil(async () => {
        const answer = await call(url, '/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow }) })
        return answer.status === 201 ? (answer.json.id as string) : null
      }),
    read: async (id) => (await call(url, `/api/v2/jobs/${id}`)).json,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** The first question is never answered; every other one is allowed. */
function leaveFirstOpen(moderator: Moderator): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  moderator.decide = () => {
    resolve()
    return moderator.asked.length === 1 ? 'hang' : ALLOW
  }
  return promise
}

describe('a service that is killed while a hook looks at outputs', { concurrency: true }, () => {
  test('hands nothing out, runs the job again and asks about what that makes', async () => {
    await using trial = await startTrial([])
    const asked = leaveFirstOpen(trial.moderator)
    const id = await trial.submit({
      '1': { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color: 0 } },
      '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'x' } },
    })
    await asked
    await trial.killAndRestart()
    const job = await waitUntil(async () => {
      const read = await trial.read(id)
      assert.ok(read.status === 'succeeded' || read.outputs.length === 0, JSON.stringify(read))
      return read.status === 'succeeded' ? read : null
    })
    assert.equal(job.outputs.length, 1)
    assert.deepEqual(
      trial.moderator.asked.map(({ id: question, fault }) => [question, fault]),
      [1, 2].map((attempt) => [`outputs_${id}_${attempt}`, null]),
    )
  })

  test('asks again about what a joined worker holds, under the same id, and the run is not repeated', async () => {
    await using trial = await startTrial(['--joins', 'on'])
    const engine = createFakeEngine()
    await using _worker = await joinTestWorker(trial, { overrides: { engine }, settings: { embedded: 'on' } })
    const asked = leaveFirstOpen(trial.moderator)
    const id = await trial.submit({ '1': { class_type: 'FakeSave', inputs: { text: 'picture' } } })
    await asked
    await trial.killAndRestart()
    const job = await waitUntil(async () => {
      const read = await trial.read(id)
      assert.ok(read.status === 'succeeded' || read.outputs.length === 0, JSON.stringify(read))
      return read.status === 'succeeded' ? read : null
    })
    assert.deepEqual([job.outputs.length, engine.runs.length], [1, 1])
    assert.deepEqual(
      trial.moderator.asked.map(({ id: question }) => question),
      [`outputs_${id}_1`, `outputs_${id}_1`],
    )
  })
})
