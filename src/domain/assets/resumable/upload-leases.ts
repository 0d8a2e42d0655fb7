/**
 * The right to write to an upload, for one request at a time in the whole service. In this process a request that has stood still
 * gives way to the next one: its sender has most likely lost the line and is back. Elsewhere its lease lapses, because it is only
 * renewed while something happens; and whoever finds its own lease lapsed stops before the next byte.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { NewId } from '../../../../lib/ids.ts'
import { settlesWithin } from '../../../../lib/waiting/sleep.ts'
import { ServiceError } from '../../errors.ts'
import type { ResumableUpload, UploadLease, UploadStore } from './upload-store.ts'

export interface UploadHold {
  readonly upload: ResumableUpload
  readonly leaseId: string
  /** Aborted when another request takes over, or the lease is lost. */
  readonly signal: AbortSignal
  /** Bytes have arrived: the writer is not stalled. Throws when the lease has lapsed. */
  touch(): void
  /** From now on the work needs no more bytes of the client, so silence no longer means that it is stalled. */
  work(): void
  /** Renews the lease; false when it is lost. */
  renew(): Promise<boolean>
}

export interface UploadLeases {
  /** Runs the work while nobody else may write. Throws upload_locked, and not_found for an upload that is gone. */
  run<Result>(id: string, work: (hold: UploadHold) => Promise<Result>): Promise<Result>
  /** Waits a moment for a request of this process that writes: the client that asks has most likely just lost that connection. */
  settled(id: string): Promise<void>
}

interface LeaseDeps {
  readonly store: Pick<UploadStore, 'hold' | 'renew' | 'release'>
  readonly newId: NewId
  readonly clock: Clock
  /** Whether this is the only process that has the store open. */
  readonly isAlone: boolean
}

export const LEASE_MS = 12_000
const RENEW_MS = 3_000
// Silence after which a request gives way: longer than a hiccup of a mobile line.
const STALLED_MS = 5_000
const RETRY_SECONDS = 2
const MOMENT_MS = 500

interface Writer {
  readonly ending: AbortController
  readonly ended: Promise<void>
  lastAtMs: number
  isWorking: boolean
}

export function createUploadLeases(deps: LeaseDeps): UploadLeases {
  const { store, newId, clock, isAlone } = deps
  const writers = new Map<string, Writer>()
  const nowMs = () => clock.now().getTime()
  const { toLease, runHeld } = createRunHeld(deps)

  /** A request whose connection broke ends within a moment; one that is finishing its upload is waited for. */
  async function settled(id: string): Promise<void> {
    const writer = writers.get(id)
    if (writer === undefined) return
    await (writer.isWorking ? writer.ended : settlesWithin(writer.ended, MOMENT_MS))
  }

  /** Aborts a writer that is stalled; throws upload_locked when there is one that is not. */
  async function makeRoom(id: string): Promise<void> {
    await settled(id)
    const writer = writers.get(id)
    if (writer === undefined) return
    if (nowMs() - writer.lastAtMs < STALLED_MS) throw locked()
    writer.ending.abort(new ServiceError('upload_locked', 'a newer request continues this upload'))
    await writer.ended
    if (writers.has(id)) throw locked()
  }

  return {
    async run(id, work) {
      await makeRoom(id)
      // Two requests at the same moment both find no writer, and a store that this process has to itself would accept both.
      if (writers.has(id)) throw locked()
      const { promise: ended, resolve: end } = Promise.withResolvers<void>()
      const writer: Writer = { ending: new AbortController(), ended, lastAtMs: nowMs(), isWorking: false }
      writers.set(id, writer)
      try {
        const lease = toLease(newId())
        const upload = await store.hold(id, { ...lease, isAlone })
        if (upload === null) throw locked()
        return await runHeld(upload, lease, writer, work)
      } finally {
        writers.delete(id)
        end()
      }
    },
    settled,
  }
}

function createRunHeld({ store, clock }: LeaseDeps) {
  const nowMs = () => clock.now().getTime()

  function toLease(leaseId: string): UploadLease {
    const now = clock.now()
    return { leaseId, now, until: new Date(now.getTime() + LEASE_MS) }
  }

  async function runHeld<Result>(
    upload: ResumableUpload,
    lease: UploadLease,
    writer: Writer,
    work: (hold: UploadHold) => Promise<Result>,
  ): Promise<Result> {
    const { leaseId } = lease
    let untilMs = lease.until.getTime()
    const lose = () => writer.ending.abort(locked())

    async function renew(): Promise<boolean> {
      const next = toLease(leaseId)
      const isHeld = await store.renew(upload.id, next)
      if (isHeld) untilMs = next.until.getTime()
      else lose()
      return isHeld
    }

    const timer = setInterval(() => {
      const isMoving = writer.isWorking || nowMs() - writer.lastAtMs < STALLED_MS
      // A store that is away now may be back before the lease has lapsed.
      if (isMoving) renew().catch(() => {})
    }, RENEW_MS)
    try {
      return await work({
        ...{ upload, leaseId, renew, signal: writer.ending.signal },
        touch() {
          writer.lastAtMs = nowMs()
          if (writer.lastAtMs >= untilMs) lose()
          writer.ending.signal.throwIfAborted()
        },
        work() {
          writer.isWorking = true
        },
      })
    } finally {
      clearInterval(timer)
    }
  }

  return { toLease, runHeld }
}

function locked(): ServiceError {
  const message =
    'another request is sending to this upload; wait until it has ended, ask with HEAD how far it came, and go on from there'
  return new ServiceError('upload_locked', message, { retryAfterSeconds: RETRY_SECONDS })
}
