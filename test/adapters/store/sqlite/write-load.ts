/**
 * A process that writes as fast as it can and says what was acknowledged, one line each, until it is killed. With `hold` it
 * only opens the directory and waits.
 */
import { randomUUID } from 'node:crypto'
import { writeSync } from 'node:fs'
import { openSqliteStore } from '../../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { DAY_MS, hashOf, newOutput, Tenant } from '../../../contracts/store-under-test.ts'

const [directory, mode] = process.argv.slice(2)
const store = await openSqliteStore({ directory })

/** At once, so that a kill takes nothing of it back; a full pipe is tried again until its reader has caught up. */
function say(...words: string[]): void {
  const line = Buffer.from(`${words.join(' ')}\n`)
  for (let done = 0; done < line.length; ) {
    try {
      done += writeSync(1, line, done)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
    }
  }
}

const tenant = new Tenant(store, 'local', 'default')
await store.accounts.put({ id: 'local', maxRunning: 4, maxQueued: 1_000_000 })
say('ready')

async function submitOne(): Promise<void> {
  const now = new Date()
  const key = randomUUID()
  const job = await tenant.submit(
    { createdAt: now },
    { key, claimedAt: now, expiresAt: new Date(now.getTime() + DAY_MS) },
  )
  say('job', job.id, key)
}

async function mintOne(): Promise<void> {
  const id = randomUUID()
  await store.assets.announceBlob(hashOf(id), 1, new Date())
  const asset = { id, accountId: 'local', hash: hashOf(id), sizeBytes: 1, contentType: 'image/png', filePath: id }
  await store.assets.mint({
    asset: { ...asset, tags: [], createdAt: new Date(), expiresAt: null, jobId: null },
    keyClaim: null,
    mustOwnHash: false,
  })
  say('asset', id)
}

async function finishOne(): Promise<void> {
  const claim = await tenant.claim({ now: new Date() })
  if (claim === null) return
  const lease = { jobId: claim.job.id, leaseId: claim.leaseId }
  const output = newOutput({ hash: hashOf(randomUUID()) })
  await store.jobs.commit(lease, { outputs: [output] })
  const outcome = await tenant.succeed(lease, new Date())
  if (outcome.outcome === 'committed') say('done', lease.jobId, output.assetId)
}

async function repeat(step: () => Promise<void>): Promise<never> {
  for (;;) await step()
}

if (mode !== 'hold') {
  const steps = [submitOne, submitOne, mintOne, finishOne]
  await Promise.all(Array.from({ length: 32 }, (_, index) => repeat(steps[index % steps.length])))
}
