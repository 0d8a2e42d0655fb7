/**
 * Kills the server without warning, again and again, at random moments under load, and then holds everything that was
 * acknowledged against what is left: jobs, assets, keys, output bytes, counters, the database itself.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { seededRandom } from '../support/seeded-random.ts'
import { type SpawnedServer, spawnServer } from '../support/spawn-server.ts'
import { inspectStore } from './inspect-store.ts'
import { type Ledger, newLedger, sha256 } from './ledger.ts'
import { readJob, startLoad, TERMINAL } from './load.ts'

export interface CrashOptions {
  readonly kills: number
  readonly seed: number
  readonly report?: (line: string) => void
}

/** How long all accepted work may take to settle after the last crash. */
const SETTLE_WITHIN_MS = 120_000
const SAMPLE = 20

export async function killAndCheck({ kills, seed, report = () => {} }: CrashOptions): Promise<Ledger> {
  const random = seededRandom(seed)
  const ledger = newLedger()
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-crash-'))
  const flags = ['--data-dir', dataDir, '--max-queue', '1000000', '--log-level', 'error']
  try {
    for (let kill = 1; kill <= kills; kill++) {
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

async function checkEverything(flags: string[], ledger: Ledger): Promise<void> {
  await using server = await spawnServer(flags)
  await settle(server, ledger)
  for (const job of ledger.jobs) {
    const seen = await readJob(server.url, ledger, job.id)
    assert.ok(TERMINAL.has(seen.status), `job ${job.id} is ${seen.status}`)
    if (seen.status === 'succeeded') await checkOutputs(server, seen.outputs)
    await checkKey(server, job.key, { job_id: job.id })
  }
  for (const asset of ledger.assets) {
    const content = await fetch(`${server.url}/api/v2/assets/${asset.id}/content`)
    assert.equal(content.status, 200, `asset ${asset.id}`)
    assert.equal(sha256(new Uint8Array(await content.arrayBuffer())), asset.sha256, `bytes of asset ${asset.id}`)
    await checkKey(server, asset.key, { asset_id: asset.id })
  }
  assert.equal(await server.terminate(), 0)
}

async function settle(server: SpawnedServer, ledger: Ledger): Promise<void> {
  const giveUpAt = Date.now() + SETTLE_WITHIN_MS
  let open = ledger.jobs.map((job) => job.id)
  while (open.length > 0) {
    assert.ok(Date.now() < giveUpAt, `${open.length} jobs never ended, such as ${open[0]}`)
    const still: string[] = []
    for (const id of open) if (!TERMINAL.has((await readJob(server.url, ledger, id)).status)) still.push(id)
    open = still
    if (open.length > 0) await delay(200)
  }
}

async function checkOutputs(
  server: SpawnedServer,
  outputs: Awaited<ReturnType<typeof readJob>>['outputs'],
): Promise<void> {
  assert.equal(outputs.length, 2, 'a picture and a value')
  for (const output of outputs) {
    const content = await fetch(`${server.url}/api/v2/assets/${output.id}/content`)
    assert.equal(content.status, 200)
    assert.equal((await content.arrayBuffer()).byteLength, output.size_bytes)
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
