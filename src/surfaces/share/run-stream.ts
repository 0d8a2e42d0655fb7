/** How a run goes on, as events for its visitor: `run` with all of it whenever it changes, `preview` with a picture of what is being made. */
import { findMetadata } from '../../../lib/files/blank-metadata/blank-metadata.ts'
import { applyPatches } from '../../../lib/files/blank-metadata/patches.ts'
import { stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import type { SharedRun } from '../../domain/endpoints/shares/shared-runs.ts'
import type { Job } from '../../domain/jobs/job.ts'
import type { JobWatcher, Preview, WatchJob } from '../../domain/jobs/read/watch-job.ts'
import { isTerminal } from '../../domain/jobs/transitions.ts'
import type { SharedSource } from '../kit/streams/shared-streams.ts'
import { type EventStream, encodeFrame } from '../kit/streams/sse.ts'
import { toRunView } from './run-view.ts'

interface RunStreamOptions {
  readonly watchJob: WatchJob
  readonly run: SharedRun
  /** The address of the link's runs. */
  readonly base: string
}

const PREVIEW_EVERY_TICKS = 4
const MAX_PREVIEW_BYTES = 1_048_576

export class RunStream implements SharedSource, JobWatcher {
  readonly ready: Promise<void>
  readonly #options: RunStreamOptions
  readonly #streams = new Set<EventStream>()
  #job: Job
  #preview: Preview | null = null
  #shown: Buffer | null = null
  #ticks = 0
  #stopWatch: (() => void) | null = null
  #isClosed = false

  constructor(options: RunStreamOptions) {
    this.#options = options
    this.#job = options.run.job
    this.ready = this.#begin()
  }

  async #begin(): Promise<void> {
    const { accountId, id } = this.#options.run.job
    const { job, preview, stop } = await this.#options.watchJob(accountId, id, this)
    if (this.#isClosed) return stop()
    this.#stopWatch = stop
    if (job.version > this.#job.version) this.#job = job
    this.#preview = preview
  }

  join(stream: EventStream): void {
    this.#streams.add(stream)
    this.resync(stream)
  }

  resync(stream: EventStream): void {
    this.#tell([stream])
  }

  left(stream: EventStream): void {
    this.#streams.delete(stream)
  }

  close(): void {
    this.#isClosed = true
    this.#stopWatch?.()
  }

  onSnapshot(job: Job): void {
    this.#job = job
    this.#tell([...this.#streams])
  }

  onPreview(preview: Preview): void {
    this.#preview = preview
  }

  onGone(): void {
    for (const stream of this.#streams) stream.end(encodeFrame('gone', '{}'))
  }

  /** At most two previews a second: only the newest counts. */
  tick(): void {
    this.#ticks += 1
    if (this.#ticks % PREVIEW_EVERY_TICKS !== 0 || this.#preview === null) return
    const preview = this.#preview
    this.#preview = null
    toPreviewFrame(preview).then(
      (frame) => {
        this.#shown = frame
        if (frame !== null && !isTerminal(this.#job.status)) for (const stream of this.#streams) stream.send(frame)
      },
      // One that cannot be read is not shown; the next one may.
      () => {},
    )
  }

  #tell(streams: readonly EventStream[]): void {
    const { run, base } = this.#options
    const view = toRunView({ ...run, job: this.#job }, base)
    const frame = encodeFrame('run', stringifyLosslessJson(view))
    for (const stream of streams) {
      if (isTerminal(this.#job.status)) stream.end(frame)
      else stream.send(frame, ...(this.#shown === null ? [] : [this.#shown]))
    }
  }
}

async function toPreviewFrame({ contentType, bytes }: Preview): Promise<Buffer | null> {
  if (bytes.byteLength > MAX_PREVIEW_BYTES) return null
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const patches = await findMetadata(file.length, async (at, length) => file.subarray(at, at + length))
  if (patches === null) return null
  const pieces: Uint8Array[] = []
  async function* whole() {
    yield file
  }
  for await (const piece of applyPatches(whole(), patches)) pieces.push(piece)
  const fields = { content_type: contentType, data_base64: Buffer.concat(pieces).toString('base64') }
  return encodeFrame('preview', JSON.stringify(fields))
}
