/**
 * The folders on a server that runs save into. A run has one of its own, unless another run of the same account has sent the server
 * the very same prompt and its folder is still there: then both use that one, so that the server finds what it has saved in its
 * cache, as it would for its own clients. Nothing in a folder is removed while a run uses it, and once something was, no further
 * run gets the folder.
 */
import { hash } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import type { NodeCatalog } from '../../../../../engine/graph/node-catalog.ts'
import type { EngineRun } from '../../../../domain/engine/engine-port.ts'
import { PREFIX_INPUT } from '../run/rewrite-graph.ts'
import type { FileLocation } from '../wire/comfy-api.ts'
import {
  createOutputCleanup,
  type FolderCleanup,
  type OutputCleanup,
  type OutputCleanupDeps,
} from './output-cleanup.ts'

// What is remembered of all folders of a server is at most 4 MiB.
const MAX_FILE_BYTES = 16_384
const MAX_FILES = 4
const MAX_REMEMBERING = 64

export interface SaveFolder {
  /** Within the server's output folder. */
  readonly folder: string
  readonly cleanup: OutputCleanup
  /** The bytes of a file that the server had in its cache, without `read` where an earlier run of the same prompt has read it. */
  recall(file: FileLocation, read: () => AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>
  /** The server has computed something, which may be a save. */
  noteSaved(): void
  /** The server had something in its cache and did not say what. */
  noteUnreported(): void
  /** A file that the server reported could not be read: whoever saves the same must not be referred to it. */
  noteUnreadable(): void
}

interface SaveRequest {
  readonly jobId: string
  /** Of a folder of its own. */
  readonly path: string
  /** Equal for runs that may use one folder; null: this one shares with nobody. */
  readonly shareKey: string | null
}

interface OpenFolder {
  readonly path: string
  readonly key: string | null
  /** Later runs do not get it any more. */
  readonly untilMs: number
  readonly cleanup: FolderCleanup
  /** The jobs that run there. */
  readonly jobIds: Set<string>
  /** Short files that more than one run has reported, by their names. */
  readonly bytes: Map<string, Uint8Array>
}

interface SaveFoldersDeps extends Omit<OutputCleanupDeps, 'folder' | 'onRemoving'> {
  /** The server runs one prompt at a time, so no two saves look for the next number at once. */
  readonly mayShare: boolean
  /** After this time a folder gets no further runs, so that it is removed however often its graph is sent. */
  readonly shareForMs: number
}

export class SaveFolders {
  readonly #deps: Omit<OutputCleanupDeps, 'folder' | 'onRemoving'>
  readonly #mayShare: boolean
  readonly #shareForMs: number
  readonly #shared = new Map<string, OpenFolder>()
  readonly #remembering = new Set<OpenFolder>()
  #isSharing = true

  constructor({ mayShare, shareForMs, ...deps }: SaveFoldersDeps) {
    this.#deps = deps
    this.#mayShare = mayShare
    this.#shareForMs = shareForMs
  }

  take({ jobId, path, shareKey }: SaveRequest): SaveFolder {
    const key = this.#mayShare && this.#isSharing ? shareKey : null
    const found = key === null ? undefined : this.#find(key)
    // Another claim of the same job is not to be met.
    const isJoined = found !== undefined && !found.jobIds.has(jobId)
    const open = isJoined ? found : this.#open(path, found === undefined ? key : null)
    open.jobIds.add(jobId)
    open.cleanup.runBegan()
    return {
      folder: open.path,
      recall: (file, read) => (isJoined ? this.#recall(open, file, read) : read()),
      noteSaved: () => {
        // The server did not have the prompt in its cache: with each further run another file would lie here.
        if (isJoined) this.#close(open)
      },
      noteUnreported: () => {
        if (isJoined) this.#isSharing = false
      },
      noteUnreadable: () => this.#close(open),
      cleanup: {
        reported: (file) => open.cleanup.reported(file),
        released: (file) => open.cleanup.released(file),
        isRemoved: (file) => open.cleanup.isRemoved(file),
        runEnded: () => {
          open.jobIds.delete(jobId)
          return open.cleanup.runEnded()
        },
      },
    }
  }

  /** Another process may run behind the address, with an empty cache. */
  forget(): void {
    for (const open of [...this.#shared.values()]) this.#close(open)
    this.#isSharing = true
  }

  #find(key: string): OpenFolder | undefined {
    const found = this.#shared.get(key)
    if (found === undefined || performance.now() < found.untilMs) return found
    this.#close(found)
    return undefined
  }

  #open(path: string, key: string | null): OpenFolder {
    const onRemoving = () => this.#close(open)
    const cleanup = createOutputCleanup({ ...this.#deps, folder: path, onRemoving })
    const open: OpenFolder = {
      path,
      key,
      cleanup,
      jobIds: new Set(),
      bytes: new Map(),
      untilMs: performance.now() + this.#shareForMs,
    }
    if (key !== null) this.#shared.set(key, open)
    return open
  }

  /** No further run gets it. Harmless when called twice. */
  #close(open: OpenFolder): void {
    if (this.#isOpen(open)) this.#shared.delete(open.key ?? '')
    this.#remembering.delete(open)
    open.bytes.clear()
  }

  #isOpen(open: OpenFolder): boolean {
    return open.key !== null && this.#shared.get(open.key) === open
  }

  #recall(open: OpenFolder, file: FileLocation, read: () => AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    if (!open.cleanup.isOwn(file)) return read()
    const name = `${file.subfolder}/${file.filename}`
    const known = open.bytes.get(name)
    if (known !== undefined) return once(known)
    return readAndKeep(read(), (bytes) => {
      const hasRoom = this.#remembering.size < MAX_REMEMBERING && open.bytes.size < MAX_FILES
      if (!hasRoom || !this.#isOpen(open)) return
      this.#remembering.add(open)
      open.bytes.set(name, bytes)
    })
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

/** Calls `keep` with all bytes, if they are few. */
async function* readAndKeep(
  source: AsyncIterable<Uint8Array>,
  keep: (bytes: Uint8Array) => void,
): AsyncGenerator<Uint8Array> {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of source) {
    size += part.length
    if (size <= MAX_FILE_BYTES) parts.push(part)
    yield part
  }
  if (size <= MAX_FILE_BYTES) keep(Buffer.concat(parts))
}

/** Longer graphs take too long to compare, beside what they take to run. */
const MAX_GRAPH_LENGTH = 65_536

/**
 * ComfyUI's own classes that give every file the next free number in its folder, as long as the name before the number is plain. Others may
 * write over a file that a run still reads.
 */
const NUMBERS_FILES: ReadonlySet<string> = new Set([
  ...['SaveImage', 'SaveAnimatedWEBP', 'SaveAnimatedPNG', 'SaveSVGNode', 'SaveLatent', 'SaveGLB'],
  ...['SaveVideo', 'SaveWEBM', 'SaveAudio', 'SaveAudioMP3', 'SaveAudioOpus'],
])

// No time, no number of the batch, no folder in place of a name.
const PLAIN_PREFIX = /^(?:[\w-][\w. -]*\/)*[\w-][\w. -]*$/

/**
 * A digest of everything that gets into the files or decides about them. null for what must not share: what saves nothing, or by
 * other classes, or under a name that ComfyUI fills in; later attempts, since an earlier one failed, perhaps at its files; and what
 * comes with data of its own, such as the layout that an editor sends along.
 */
export function toShareKey(run: EngineRun, catalog: NodeCatalog): string | null {
  const { accountId, attempt, graph, graphText, inputs, extraData } = run
  if (attempt > 1 || extraData !== null || graphText === undefined || graphText.length > MAX_GRAPH_LENGTH) return null
  let saves = false
  for (const { classType, inputs: given } of graph.values()) {
    if (given[PREFIX_INPUT] === undefined || catalog.find(classType)?.output_node !== true) continue
    const prefix = given[PREFIX_INPUT]
    if (!NUMBERS_FILES.has(classType) || catalog.judgesItself?.(classType) === true) return null
    if (typeof prefix !== 'string' || !PLAIN_PREFIX.test(prefix)) return null
    saves = true
  }
  if (!saves) return null
  const files = [...inputs].map(([name, { hash }]) => [name, hash])
  return hash('sha256', JSON.stringify([accountId, graphText, files]))
}
