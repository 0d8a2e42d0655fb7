/**
 * Kills the server without warning at random moments under load, again and again, and then checks that everything that was
 * acknowledged is still there: jobs, assets, keys, output bytes, counters, the database itself.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { openBlake3 } from '../../lib/files/blake3.ts'
import { PROGRAM } from '../support/app/program.ts'
import { type SpawnedServer, spawnServer } from '../support/app/spawn-server.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { waitUntil } from '../support/wait-until.ts'
import { inspectStore } from './inspect-store.ts'
import { type Ledger, newLedger, sha256 } from './ledger.ts'
import { readJob, startLoad, TERMINAL } from './load.ts'

export interface CrashOptions {
  readonly kills: number
  readonly seed: number
  readonly report?: (line: string) => void
}

/** How long all accepted work may take to settle after the last crash. */
const SAMPLE = 20
const blake3 = await openBlake3()

export async function killAndCheck({ kills, seed, report = () => {} }: CrashOptions): Promise<Ledger> {
  const random = seededRandom(seed)
  const ledger = newLedger()
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-crash-'))
  const flags = ['--data-dir', dataDir, '--max-queue', '1000000', '--log-level', 'error']
  try {
    for (let kill = 1; kill <= kills; kill++) {
      if (random.next() < 0.3) await killWhileStarting(flags, random.between(50, 1500))
      await using server = await spawnServer(flags)
      for (let index = 0; index < SAMPLE && ledger.jobs.length > 0; index++)
        await readJob(server.url, ledger, random.pick(ledger.jobs).id)
      const load = startLoad(server.url, ledger, random)
      await delay(random.between(5, 500))
      await server.killNow()
      load.stop()
      await load.stopped
      if (kill % 10 === 0)
        report(`${kill} kills: ${ledger.jobs.length} jobs, ${ledger.assets.length} assets acknowledged`)
    }
    await checkEverything(flags, ledger)
    await inspectStore(dataDir)
    return ledger
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}

/** Migrations, recovery and the sweep of left-overs are cut short as well. */
async function killWhileStarting(flags: string[], afterMs: number): Promise<void> {
  const child = spawn(process.execPath, [PROGRAM, 'serve', '--port', '0', ...flags], { stdio: 'ignore' })
  const exited = once(child, 'exit')
  await delay(afterMs)
  child.kill('SIGKILL')
  await exited
}

/** The only ways in which one of these jobs may fail: too many crashes in its runs, or one while it waited with credentials. */
const EXCUSED = new Set(['worker_lost', 'credentials_lost'])

async function checkEverything(flags: string[], ledger: Ledger): Promise<void> {
  await using server = await spawnServer(flags)
  await settle(server, ledger)
  const names = new Set<string>()
  for (const job of ledger.jobs) {
    const seen = await readJob(server.url, ledger, job.id)
    assert.ok(TERMINAL.has(seen.status), `job ${job.id} is ${seen.status}`)
    assert.deepEqual(seen.metadata, { label: job.label })
    if (seen.status === 'succeeded') await checkOutputs(server, seen.outputs)
    if (seen.status === 'failed') assert.ok(EXCUSED.has(seen.error?.code ?? ''), `job ${job.id}: ${seen.error?.code}`)
    if (seen.error?.code === 'credentials_lost') assert.ok(job.hasSecret)
    for (const { name } of seen.outputs.filter(({ name }) => name.endsWith('.png'))) {
      assert.ok(!names.has(name), `the file name ${name} was given twice`)
      names.add(name)
    }
    await checkKey(server, job.key, { job_id: job.id })
  }
  for (const asset of ledger.assets) {
    const content = await fetch(`${server.url}/api/v2/assets/${asset.id}/content`)
    await checkKey(server, asset.key, { asset_id: asset.id })
    const removal = ledger.removed.get(asset.id)
    if (removal === 'acknowledged') assert.equal(content.status, 404, `the removed asset ${asset.id}`)
    if (removal !== undefined && content.status === 404) continue
    assert.equal(content.status, 200, `asset ${asset.id}`)
    assert.equal(sha256(new Uint8Array(await content.arrayBuffer())), asset.sha256, `bytes of asset ${asset.id}`)
  }
  assert.equal(await server.terminate(), 0)
}

async function settle(server: SpawnedServer, ledger: Ledger): Promise<void> {
  for (const { id } of ledger.jobs) {
    await waitUntil(
      async () => TERMINAL.has((await readJob(server.url, ledger, id)).status),
      () => `job ${id} has ended`,
    )
  }
  // Some jobs were accepted, and the kill came before the answer: what they leave behind is looked at, too.
  await waitUntil(
    async () => {
      const queue = (await (await fetch(`${server.url}/api/queue`)).json()) as Record<string, readonly unknown[]>
      return Object.values(queue).every((jobs) => jobs.length === 0)
    },
    () => 'nothing waits or runs',
  )
}

async function checkOutputs(
  server: SpawnedServer,
  outputs: Awaited<ReturnType<typeof readJob>>['outputs'],
): Promise<void> {
  assert.equal(outputs.length, 2, 'a picture and a value')
  for (const output of outputs) {
    const content = await fetch(`${server.url}/api/v2/assets/${output.id}/content`)
    assert.equal(content.status, 200)
    const bytes = new Uint8Array(await content.arrayBuffer())
    assert.equal(bytes.byteLength, output.size_bytes)
    assert.equal(`blake3:${blake3.hash(bytes)}`, output.hash)
  }
}

async function checkKey(server: SpawnedServer, key: string, holder: Record<string, string>): Promise<void> {
  const response = await fetch(`${server.url}/api/v2/jobs`, {
    method: 'POST',
    headers: { 'idempotency-key': key },
    body: JSON.stringify({ workflow: { '1': { class_type: 'PreviewAny', inputs: { source: 'again' } } } }),
  })
  const body = (await response.json()) as { error?: { code: string; details: Record<string, string> } }
  assert.equal(response.status, 422, `key ${key} was taken again`)
  assert.equal(body.error?.code, 'idempotency_key_reuse')
  for (const [name, id] of Object.entries(holder)) assert.equal(body.error?.details[name], id)
}
