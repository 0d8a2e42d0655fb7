/** Claims whose answers get lost, questions that are taken back, and a worker that ends: no job stays with a lease that nobody knows. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { silentLog } from '../../../lib/log.ts'
import { ClaimScout } from '../../../src/adapters/gateway/claim-scout.ts'
import { storeUnavailable } from '../../../src/domain/errors.ts'
import type { Claim, ClaimRequest } from '../../../src/domain/jobs/job-store.ts'
import { type SeededRandom, seededRandom } from '../../support/seeded-random.ts'

const ENGINES = ['one', 'two', 'three']

/** A service that gives jobs out by chance, and whose answers are lost by chance. */
function createService(random: SeededRandom) {
  const held = new Map<string, string>()

  async function ask(
    { engines }: ClaimRequest,
    { leaseId, waitMs, signal }: { readonly leaseId: string; readonly waitMs: number; readonly signal?: AbortSignal },
  ): Promise<Claim | null> {
    await turn()
    const waits = waitMs > 0 && random.next() < 0.5
    if (waits && signal?.aborted === false) {
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    }
    if (!held.has(leaseId) && random.next() < 0.6) held.set(leaseId, random.pick(engines).engineId)
    await turn()
    if (signal?.aborted || random.next() < 0.4) throw storeUnavailable(new Error('the answer was lost'))
    const engineId = held.get(leaseId)
    return engineId === undefined ? null : ({ leaseId, engineId } as Claim)
  }

  async function giveBack(leaseId: string): Promise<void> {
    await turn()
    held.delete(leaseId)
  }

  return { held, ask, giveBack }
}

function requestFor(random: SeededRandom): ClaimRequest {
  const engines = ENGINES.filter(() => random.next() < 0.6)
  const offered = engines.length === 0 ? ENGINES.slice(0, 1) : engines
  return { engines: offered.map((engineId) => ({ engineId })) } as unknown as ClaimRequest
}

const signatureOf = ({ engines }: ClaimRequest) => engines.map(({ engineId }) => engineId).join()

test('whatever answers are lost, every job that was given is taken by the worker or given back', async () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = seededRandom(seed)
    const service = createService(random)
    const scout = new ClaimScout({ ...service, signatureOf, ring() {}, maxWaitMs: 20_000, log: silentLog })
    const taken = new Set<string>()
    async function claim(): Promise<void> {
      const request = requestFor(random)
      const got = await scout.claim(request).catch(() => null)
      if (got === null) return
      taken.add(got.leaseId)
      const isOffered = request.engines.some(({ engineId }) => engineId === got.engineId)
      assert.ok(isOffered, `seed ${seed}: a job for an engine that was not offered`)
    }
    let last = Promise.resolve()
    for (let step = 0; step < 8; step++) {
      if (random.next() < 0.2) scout.cancel(random.next() < 0.5 ? signatureOf(requestFor(random)) : undefined)
      last = claim()
      await last
      for (let turns = random.between(0, 6); turns > 0; turns--) await turn()
    }
    // The worker may end while it asks.
    if (random.next() < 0.5) last = claim()
    await scout.end()
    await last
    const forgotten = [...service.held.keys()].filter((leaseId) => !taken.has(leaseId))
    assert.deepEqual(forgotten, [], `seed ${seed}`)
  }
})
