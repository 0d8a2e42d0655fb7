/**
 * Reads an object as one stream, whatever happens to its connections: a stream that breaks or falls silent goes on where it was,
 * as long as it gets on and the budget of retries lasts. A first answer that is late is asked for a second time and the faster of the two is used, within a budget. A whole
 * read is compared with its hash on the way, and the last chunk is let through only when all of them were right.
 */
import { Readable } from 'node:stream'
import type { Blake3 } from '../../../../lib/files/blake3.ts'
import { type Backoff, sleep } from '../../../../lib/waiting/sleep.ts'
import type { ByteRange } from '../../../domain/assets/blob-store.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { Bucket, ObjectStream } from './bucket.ts'
import { mayPass, S3Error, toStorageError } from './s3-error.ts'

interface ReadPlan {
  readonly key: string
  /** null: not known yet, so nothing is compared. */
  readonly hash: string | null
  /** Of the whole object. */
  readonly sizeBytes: number
  readonly range?: ByteRange | undefined
}

interface ReadDeps {
  readonly bucket: Bucket
  readonly blake3: Blake3
  readonly hedge: Hedge
  onDamage(): void
  onTransferred(bytes: number): void
}

/** When a second request for the same bytes is worth its cost. */
export interface Hedge {
  /** The first of the two answers; the other is given up. */
  first(open: (signal: AbortSignal) => Promise<ObjectStream>): Promise<ObjectStream>
}

const HEDGE_AFTER_MS = 400
const HEDGE_SHARE = 0.05
const MAX_HEDGES = 5

export function createHedge({ afterMs = HEDGE_AFTER_MS }: { readonly afterMs?: number } = {}): Hedge {
  // Grows with every read: a twentieth of them may be asked for twice.
  let budget = MAX_HEDGES

  return {
    first(open) {
      budget = Math.min(MAX_HEDGES, budget + HEDGE_SHARE)
      return new Promise((resolve, reject) => {
        const endings: AbortController[] = []
        let running = 0
        let isDecided = false
        const decide = () => {
          isDecided = true
          clearTimeout(timer)
        }
        function run(): void {
          const ending = new AbortController()
          endings.push(ending)
          running++
          open(ending.signal).then(
            (stream) => {
              if (isDecided) return void stream.body.on('error', () => {}).destroy()
              decide()
              for (const other of endings) if (other !== ending) other.abort(null)
              resolve(stream)
            },
            (error: unknown) => {
              running--
              if (isDecided || running > 0) return
              decide()
              reject(error)
            },
          )
        }
        const timer = setTimeout(() => {
          if (budget < 1) return
          budget -= 1
          run()
        }, afterMs)
        run()
      })
    },
  }
}

// In a row, without getting on by as much as this in between.
const MAX_RESUMES = 8
const PROGRESS_BYTES = 256 * 1024
const STREAM_BYTES = 256 * 1024

/** Throws when the object cannot be opened; what breaks later breaks the stream. */
export async function readObject(plan: ReadPlan, deps: ReadDeps): Promise<Readable> {
  const { start, end } = plan.range ?? { start: 0, end: plan.sizeBytes - 1 }
  if (end < start) return Readable.from([], { objectMode: false })
  const isWhole = start === 0 && end === plan.sizeBytes - 1
  const openAt = (from: number, signal?: AbortSignal) =>
    deps.bucket.get(plan.key, isWhole && from === 0 ? null : `bytes=${from}-${end}`, signal)
  const first = await deps.bucket.patience
    .run(async () => mustFit(await deps.hedge.first((signal) => openAt(start, signal)), end - start + 1))
    .catch((error: unknown) => {
      throw toStorageError(error)
    })
  return new ResumedRead(first, { start, end, isWhole, openAt, plan, deps })
}

/** An object of another size is not what was stored: a proxy's page, or somebody's file of the same name. */
function mustFit(stream: ObjectStream, expected: number): ObjectStream {
  if (Number.isNaN(stream.sizeBytes) || stream.sizeBytes === expected) return stream
  stream.body.on('error', () => {}).destroy()
  throw new S3Error('an object has another size than what was stored', { status: 200, code: 'WrongSize' })
}

interface ResumedOptions {
  readonly start: number
  /** Inclusive. */
  readonly end: number
  readonly isWhole: boolean
  readonly plan: ReadPlan
  readonly deps: ReadDeps
  openAt(from: number, signal?: AbortSignal): Promise<ObjectStream>
}

class ResumedRead extends Readable {
  readonly #options: ResumedOptions
  #hasher: ReturnType<Blake3['createHasher']> | null
  readonly #ending = new AbortController()
  readonly #backoff: Backoff
  #source: Readable
  #at: number
  #resumes = 0
  #resumedAt = 0
  #hasPassedOn = false
  #wasDamaged = false

  constructor(first: ObjectStream, options: ResumedOptions) {
    super({ highWaterMark: STREAM_BYTES })
    this.#options = options
    this.#at = options.start
    this.#resumedAt = options.start
    this.#backoff = options.deps.bucket.patience.newBackoff()
    this.#hasher = this.#newHasher()
    this.#source = first.body
    this.#follow(first.body)
    first.body.pause()
  }

  #follow(source: Readable): void {
    source.on('data', (chunk: Buffer) => this.#take(chunk))
    source.on('end', () => {
      // Everything that was asked for has been passed on already, or the answer was cut without saying so.
      if (this.#at <= this.#options.end)
        void this.#resume(new S3Error('an answer was cut', { status: null, code: 'broken' }))
    })
    source.on('error', (error) => void this.#resume(toReadError(error)))
  }

  #take(chunk: Buffer): void {
    if (this.destroyed) return
    const { end, plan, deps } = this.#options
    this.#at += chunk.length
    deps.onTransferred(chunk.length)
    this.#hasher?.update(chunk)
    if (this.#at <= end) {
      this.#hasPassedOn = true
      if (!this.push(chunk)) this.#source.pause()
      return
    }
    const isRight = this.#at === end + 1 && (this.#hasher === null || this.#hasher.digest() === plan.hash)
    if (!isRight && !this.#hasPassedOn && !this.#wasDamaged) {
      this.#startAnew()
      return
    }
    if (!isRight) {
      deps.onDamage()
      this.destroy(damaged())
      return
    }
    this.push(chunk)
    this.push(null)
  }

  #newHasher(): ReturnType<Blake3['createHasher']> | null {
    const { isWhole, plan, deps } = this.#options
    return isWhole && plan.hash !== null ? deps.blake3.createHasher() : null
  }

  /** The bytes may have been damaged on their way only. */
  #startAnew(): void {
    this.#wasDamaged = true
    this.#at = this.#options.start
    this.#hasher = this.#newHasher()
    void this.#resume(new S3Error('an answer was damaged', { status: null, code: 'broken' }))
  }

  async #resume(error: unknown): Promise<void> {
    if (this.destroyed || this.readableEnded || this.#at > this.#options.end) return
    this.#source
      .removeAllListeners('data')
      .removeAllListeners('end')
      .on('error', () => {})
      .destroy()
    if (this.#at - this.#resumedAt >= PROGRESS_BYTES) {
      this.#resumes = 0
      this.#backoff.reset()
    }
    this.#resumedAt = this.#at
    let last = error
    const { patience } = this.#options.deps.bucket
    while (mayPass(last) && this.#resumes < MAX_RESUMES && patience.spend()) {
      this.#resumes++
      await sleep(this.#backoff.nextMs(), this.#ending.signal)
      if (this.destroyed) return
      try {
        const left = this.#options.end - this.#at + 1
        const { body } = mustFit(await this.#options.openAt(this.#at, this.#ending.signal), left)
        if (this.destroyed) return void body.on('error', () => {}).destroy()
        this.#source = body
        this.#follow(body)
        return
      } catch (failed) {
        last = failed
      }
    }
    this.destroy(toStorageError(last) as Error)
  }

  override _read(): void {
    this.#source.resume()
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#ending.abort(null)
    this.#source.on('error', () => {}).destroy()
    callback(error)
  }
}

function toReadError(cause: unknown): S3Error {
  return new S3Error('a download broke off', { status: null, code: 'broken', cause })
}

function damaged(): ServiceError {
  return new ServiceError('output_unavailable', 'the stored bytes are damaged; trying again does not help')
}
