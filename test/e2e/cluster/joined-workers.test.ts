/** Workers that reach their service over HTTP alone, as processes of their own: two nodes that take requests, and machines that die. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { pictureGraph } from '../../support/app/fleet-app.ts'
import { ADMIN_TOKEN, createWorkerKey, revokeWorkerKey } from '../../support/app/join-worker.ts'
import { type SpawnedServer, spawnServer } from '../../support/app/spawn-server.ts'
import { call } from '../../support/clients/call.ts'
import { type FakeComfy, startFakeComfy } from '../../support/engines/fake-comfyui/fake-comfyui.ts'
import { findFreePort } from '../../support/network/free-port.ts'
import { createTestDatabase } from '../../support/postgres/test-database.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** Between a worker and its node: what passes can be looked at, and every connection cut. */
class Wire implements AsyncDisposable {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  onUpload: (() => Promise<void>) | null = null

  constructor(target: string) {
    const { hostname, port } = new URL(target)
    this.#server = createServer((near) => {
      const far = connect(Number(port), hostname)
      for (const socket of [near, far]) {
        this.#sockets.add(socket)
        socket.on('error', () => {})
        socket.on('close', () => {
          this.#sockets.delete(socket)
          near.destroy()
          far.destroy()
        })
      }
      far.pipe(near)
      near.on('data', async (chunk) => {
        const interrupt = this.onUpload
        if (interrupt !== null && chunk.includes('PUT /worker/v1/jobs/')) {
          this.onUpload = null
          near.pause()
          await interrupt()
          near.resume()
        }
        far.write(chunk)
      })
    })
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    const { port } = this.#server.address() as { port: number }
    return `http://127.0.0.1:${port}`
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

describe('workers that joined over HTTP', () => {
  const stack = new AsyncDisposableStack()
  let flags: string[] = []
  let env: Record<string, string> = {}
  let folder = ''
  let first: SpawnedServer
  let second: SpawnedServer

  before(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'atelier-joined-'))
    stack.defer(() => rmSync(folder, { recursive: true, force: true }))
    const { url } = stack.use(await createTestDatabase())
    flags = ['--role', 'api', '--data-dir', path.join(folder, 'data')]
    env = { ATELIER_DATABASE: url, ATELIER_SECRET_KEY: 'ab'.repeat(32), ATELIER_ADMIN_TOKEN: ADMIN_TOKEN }
    first = stack.use(await spawnServer(flags, env))
    second = stack.use(await spawnServer(flags, env))
  })
  after(() => stack.disposeAsync())

  async function joinWorker(
    fake: FakeComfy,
    urls: readonly string[],
    key?: string,
    more: readonly string[] = [],
  ): Promise<SpawnedServer> {
    const file = path.join(folder, `key-${Math.random()}`)
    writeFileSync(file, key ?? (await createWorkerKey(second.url)).text, { mode: 0o600 })
    const where = ['--join', urls.join(','), '--token-file', file, '--comfyui', fake.url.href]
    return spawnServer([...where, '--log-level', 'warn', ...more], {}, { command: 'work' })
  }

  async function submit(color: number): Promise<string> {
    // What a worker's engine can run is known to every node within two seconds.
    const answer = await waitUntil(async () => {
      const body = JSON.stringify({ workflow: pictureGraph(color) })
      const made = await call(second.url, '/api/v2/jobs', { method: 'POST', body })
      return made.status === 201 ? made : null
    })
    return answer.json.id
  }

  // biome-ignore lint/suspicious/noExplicitAny: a job as the API shows it
  function until(id: string, status: string): Promise<any> {
    return waitUntil(async () => {
      const { json } = await call(second.url, `/api/v2/jobs/${id}`)
      if (json.status === 'failed') throw new Error(JSON.stringify(json.error))
      return json.status === status ? json : null
    })
  }

  async function checkOutput({ outputs }: { outputs: readonly { url: string; size_bytes: number }[] }): Promise<void> {
    assert.equal(outputs.length, 1)
    const content = await call(second.url, new URL(outputs[0].url).pathname)
    assert.deepEqual([content.status, content.bytes.length], [200, outputs[0].size_bytes])
  }

  test('a job that one node took is run by a worker of another node, and canceled through any', async () => {
    await using fake = await startFakeComfy({})
    await using _worker = await joinWorker(fake, [first.url])
    await checkOutput(await until(await submit(1), 'succeeded'))
    fake.hold('running')
    const id = await submit(2)
    await fake.held('running')
    assert.equal((await call(second.url, `/api/v2/jobs/${id}/cancel`, { method: 'POST' })).status, 200)
    await until(id, 'canceled')
    fake.release('running')
  })

  test('connections that are cut again and again cost no attempt', async () => {
    await using fake = await startFakeComfy({})
    await using wire = new Wire(first.url)
    await using _worker = await joinWorker(fake, [await wire.listen()])
    fake.hold('running')
    const id = await submit(3)
    await fake.held('running')
    wire.cut()
    fake.hold('finishing')
    fake.release('running')
    await fake.held('finishing')
    wire.cut()
    fake.release('finishing')
    wire.cut()
    await checkOutput(await until(id, 'succeeded'))
    assert.equal(fake.executions.length, 1)
  })

  test('a node that dies in the middle of an upload is replaced by another one, and the run goes on', async () => {
    await using fake = await startFakeComfy({})
    await using dying = await spawnServer(flags, env)
    await using wire = new Wire(dying.url)
    await using _worker = await joinWorker(fake, [await wire.listen(), first.url])
    let isKilled = false
    wire.onUpload = async () => {
      isKilled = true
      await dying.killNow()
    }
    await checkOutput(await until(await submit(4), 'succeeded'))
    assert.equal(isKilled, true)
    assert.equal(fake.executions.length, 1)
  })

  test('a worker that dies in the middle of a run is replaced by the next one', async () => {
    await using fake = await startFakeComfy({})
    const key = (await createWorkerKey(second.url)).text
    const worker = await joinWorker(fake, [first.url], key)
    fake.hold('running')
    const id = await submit(5)
    await fake.held('running')
    await worker.killNow()
    fake.release('running')
    await using _next = await joinWorker(fake, [first.url], key)
    await checkOutput(await until(id, 'succeeded'))
  })

  test('a worker whose key is revoked ends by itself, with the reason', async () => {
    await using fake = await startFakeComfy({})
    const { id, text } = await createWorkerKey(second.url)
    await using worker = await joinWorker(fake, [first.url], text)
    await revokeWorkerKey(second.url, id)
    // Exit 2 is what keeps a supervisor from starting it again.
    assert.equal(await worker.exited, 2)
    assert.match(worker.output(), /^atelier: the worker stopped: the service refuses the key of this worker[^\n]+\n$/m)
    assert.ok(!worker.output().includes(text.slice(17)))
    const again = joinWorker(fake, [first.url], text)
    await assert.rejects(
      again,
      /stopped with 2 before it listened:[\s\S]*\natelier: cannot join: the service refuses the key/,
    )
  })

  test('a joined worker answers for its health and tells its metrics where it is told to', async () => {
    await using fake = await startFakeComfy({})
    const port = await findFreePort()
    await using worker = await joinWorker(fake, [first.url], undefined, ['--health', String(port)])
    const ask = (at: string) => fetch(`http://127.0.0.1:${port}${at}`)
    await waitUntil(async () => (await ask('/readyz')).status === 200)
    assert.equal((await ask('/healthz')).status, 200)
    await checkOutput(await until(await submit(7), 'succeeded'))
    const metrics = await waitUntil(async () => {
      const text = await (await ask('/metrics')).text()
      return /^atelier_jobs_finished_total\{status="succeeded",code=""\} [1-9]/m.test(text) ? text : null
    })
    assert.match(metrics, /^atelier_info\{version="[^"]+",role="worker"\} 1$/m)
    assert.match(metrics, /^atelier_jobs_running_here 0$/m)
    assert.equal(await worker.terminate(), 0)
  })
})
