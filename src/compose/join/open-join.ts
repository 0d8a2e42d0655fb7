/** Joins a service over HTTPS: what a worker has a store, blobs, a bus and a registry for, spoken to any node of that service. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { createFollowedClock } from '../../../lib/followed-clock.ts'
import { newUuidV4 } from '../../../lib/ids.ts'
import type { Log } from '../../../lib/log.ts'
import type { Tracer } from '../../../lib/tracing/tracer.ts'
import { createBackoff, sleep } from '../../../lib/waiting/sleep.ts'
import { GatewayClient, type Hello } from '../../adapters/gateway/gateway-client.ts'
import { HeldJobs } from '../../adapters/gateway/held-jobs.ts'
import { RemoteBus } from '../../adapters/gateway/remote-bus.ts'
import { createRemoteEngines } from '../../adapters/gateway/remote-engines.ts'
import { createRemoteFiles } from '../../adapters/gateway/remote-files.ts'
import { createRemoteModels, RemoteJobs, type RemoteJobsDeps } from '../../adapters/gateway/remote-jobs.ts'
import type { JoinConfig } from '../../config/join-config.ts'
import type { Secret } from '../../config/secrets.ts'
import { isStoreAway, ServiceError } from '../../domain/errors.ts'
import { haveFree } from '../storage/can-write-probe.ts'

export interface JoinParts {
  readonly key: Secret<string>
  readonly log: Log
  /** For tests: others than this program's own. */
  readonly versions?: readonly number[]
  /** Ends the wait for a service that does not answer yet. */
  readonly signal?: AbortSignal
  /** Left out: tracing is off. */
  readonly tracer?: Tracer
}

export type JoinedService = Awaited<ReturnType<typeof openJoin>>

/** What this program speaks: its own version and the one before. */
const VERSIONS = [1]
// A service far away answers slowly, and a moment that is off by half of that does no harm here.
const MAX_ROUND_TRIP_MS = 2000
const FIRST_SAMPLES = 3

/** Waits for the service as long as it does not answer; throws ServiceError when it refuses. */
export async function openJoin({ urls }: JoinConfig, parts: JoinParts) {
  const { key, log, versions = VERSIONS, signal, tracer } = parts
  await using opening = new AsyncDisposableStack()
  const instanceId = newUuidV4()
  const client = opening.use(new GatewayClient({ urls, key: key.reveal(), instanceId, versions, log }))
  const hello = await firstHello(client, { log, signal })
  const clock = createFollowedClock(new Date(hello.time_ms), { maxRoundTripMs: MAX_ROUND_TRIP_MS })
  const held = new HeldJobs()
  const bus = opening.use(new RemoteBus({ client, held, log }))
  const engines = createRemoteEngines(client, () => bus.liveNode())
  for (let count = 0; count < FIRST_SAMPLES; count++) await clock.sample(engines.readTime)
  const directory = await mkdtemp(join(tmpdir(), 'atelier-work-'))
  opening.defer(() => rm(directory, { recursive: true, force: true }))
  const blake3 = await openBlake3()
  const files = createRemoteFiles({ client, held, blake3, directory, maxPieceBytes: hello.piece_bytes })
  const opened = opening.move()
  return {
    hello,
    client,
    instanceId,
    refused: client.refused,
    clock,
    sampleClock: () => clock.sample(engines.readTime),
    engines,
    bus,
    held,
    files,
    /** Whether outputs of so many bytes find room here on their way to the service. */
    hasRoomFor: (bytes: number) => haveFree([directory], bytes),
    runModel: createRemoteModels(client, held, tracer),
    openJobs: (here: Pick<RemoteJobsDeps, 'describe' | 'onClaimed'>) =>
      new RemoteJobs({ ...here, client, held, bus, maxWaitMs: hello.max_wait_ms, log }),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

interface FirstOptions {
  readonly log: Log
  readonly signal?: AbortSignal
}

async function firstHello(client: GatewayClient, { log, signal }: FirstOptions): Promise<Hello> {
  const backoff = createBackoff({ firstMs: 250, maxMs: 10_000 })
  let isTold = false
  while (true) {
    try {
      return await client.hello()
    } catch (error) {
      // A key that was made a moment ago may not be known everywhere yet.
      const isNew = error instanceof ServiceError && error.refusal === 'unauthorized'
      const refused = isNew ? await Promise.race([client.refused, sleep(2500, signal)]) : undefined
      if (refused !== undefined) throw refused
      if (!isStoreAway(error) && !isNew) throw error
      if (!isTold) log.warn({ err: error }, 'the service does not answer yet; asking again until it does')
      isTold = true
      await sleep(backoff.nextMs(), signal)
      if (signal?.aborted === true) throw error
    }
  }
}
