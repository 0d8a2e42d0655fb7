/**
 * Files that the service fetches into a library from addresses that a caller gives, where the operator allows such addresses. What can
 * be refused is refused when the other server has begun to answer; then the fetch goes on by itself, and its record says how far it is.
 * A record that nobody has written to for a while belongs to a process that is gone: it has failed. Another process cancels a fetch by
 * its record, which the fetching process meets when it next writes.
 */
import type { Clock, Ticker } from '../../../../lib/clock.ts'
import type { NewId } from '../../../../lib/ids.ts'
import type { Log } from '../../../../lib/log.ts'
import { ServiceError } from '../../errors.ts'
import { type FetchedFile, type FetchInput, type FileFault, GivenFileError } from '../given-files.ts'
import type { AddToLibrary, LibraryCreation, LibraryFields } from './add-to-library.ts'
import type { AssetImport, ImportError, ImportMove, ImportStore } from './import-store.ts'
import type { Library } from './library.ts'
import type { LibraryEntry } from './library-entry.ts'

/** What another server says of a file. */
interface RemoteFile {
  /** null: it does not say. */
  readonly sizeBytes: number | null
  readonly contentType: string
  readonly fileName: string | null
  readonly finalUrl: string
  /** Why it would not be taken as a model; empty: it would. */
  readonly problems: readonly RemoteProblem[]
}

interface RemoteProblem {
  readonly code: 'FILE_TOO_LARGE' | 'FORMAT_NOT_ALLOWED'
  readonly message: string
  readonly field: string
}

interface ImportRequest extends Omit<LibraryFields, 'fileName'> {
  readonly accountId: string
  readonly url: string
  /** null: as its server calls it. */
  readonly fileName: string | null
}

/** Why nothing can be had from there. */
export interface SourceFailed {
  readonly outcome: 'source_failed'
  readonly fault: FileFault
  /** What its server answered; null: nothing. */
  readonly status: number | null
  readonly message: string
}

type LookOutcome = { readonly outcome: 'seen'; readonly file: RemoteFile } | SourceFailed
type BeginOutcome =
  | { readonly outcome: 'begun'; readonly task: AssetImport }
  /** The account has the file from this very address. */
  | { readonly outcome: 'there'; readonly entry: LibraryEntry }
  | SourceFailed
type TakeOutcome = ({ readonly outcome: 'taken' } & LibraryCreation) | SourceFailed
type CancelOutcome = 'cancelled' | 'not_found' | 'over'

export interface FileImports extends AsyncDisposable {
  look(accountId: string, url: string): Promise<LookOutcome>
  /** Throws `rate_limited`, and what an upload throws. */
  begin(request: ImportRequest): Promise<BeginOutcome>
  /** Waits for the whole file; one that takes long is better begun. */
  take(request: ImportRequest): Promise<TakeOutcome>
  find(accountId: string, id: string): Promise<AssetImport | null>
  cancel(accountId: string, id: string): Promise<CancelOutcome>
  /** Tells how far the fetches of this process are. Returns the end of it. */
  onMoved(listen: (task: AssetImport) => void): () => void
  /** Forgets old records. */
  sweep(): Promise<number>
}

interface ImportDeps {
  readonly store: ImportStore
  readonly library: Pick<Library, 'list'>
  readonly add: Pick<AddToLibrary, 'admit' | 'upload'>
  readonly fetchInput: FetchInput
  readonly maxBytesOf: (accountId: string) => number
  readonly newId: NewId
  readonly clock: Clock
  readonly ticker: Ticker
  readonly log: Log
}

const MAX_RUNNING = 4
const TELL_EACH_MS = 1_000
/** Much longer than between two writes, so that a process that is busy is not taken for one that is gone. */
const GONE_AFTER_MS = 60_000
const KEPT_MS = 24 * 3_600_000
const TAKE_MS = 60_000
const SWEPT_AT_ONCE = 1_000
const GONE: ImportError = { code: 'interrupted', message: 'the process that fetched it has ended; begin again' }

export function createFileImports(deps: ImportDeps): FileImports {
  const { store, fetchInput, maxBytesOf, clock, ticker } = deps
  const listeners = new Set<(task: AssetImport) => void>()
  const fetching = createFetching(deps, (task) => {
    for (const listen of listeners) listen(task)
  })

  /** Nothing is read of it yet. */
  function open(
    { accountId, url }: Pick<ImportRequest, 'accountId' | 'url'>,
    signal: AbortSignal,
  ): Promise<FetchedFile> {
    return fetchInput(url, { maxBytes: maxBytesOf(accountId), signal })
  }

  return {
    async look(accountId, url) {
      const ending = new AbortController()
      try {
        await using file = await open({ accountId, url }, ending.signal)
        return { outcome: 'seen', file: toRemoteFile(file, maxBytesOf(accountId)) }
      } catch (error) {
        return toSourceFailed(error)
      } finally {
        ending.abort()
      }
    },
    begin: createBegin(deps, { open, fetching }),
    async take(request) {
      const ending = new AbortController()
      const late = new GivenFileError('fetch_failed', `it took longer than ${TAKE_MS / 1000} s`)
      const forget = ticker.after(TAKE_MS, () => ending.abort(late))
      try {
        await using file = await open(request, ending.signal)
        const fields = toFields(request, file)
        const { accountId } = request
        const created = await deps.add.upload({
          ...{ accountId, source: file.body, describe: () => fields, isDescribed: true, assetId: null },
          signal: ending.signal,
        })
        return { outcome: 'taken', ...created }
      } catch (error) {
        return toSourceFailed(ending.signal.aborted ? late : error)
      } finally {
        forget()
        ending.abort(late)
      }
    },
    async find(accountId, id) {
      const task = await store.find(accountId, id)
      if (task === null || task.status !== 'running') return task
      return isGone(task, clock.now()) ? { ...task, status: 'failed', error: GONE } : task
    },
    async cancel(accountId, id) {
      const task = await store.find(accountId, id)
      if (task === null) return 'not_found'
      const now = clock.now()
      const move: ImportMove = { ...task, status: 'cancelled', changedAt: now }
      if (task.status !== 'running' || isGone(task, now) || !(await store.move(accountId, id, move))) return 'over'
      fetching.stop(id)
      return 'cancelled'
    },
    onMoved(listen) {
      listeners.add(listen)
      return () => listeners.delete(listen)
    },
    sweep: () => store.expire(clock.now(), SWEPT_AT_ONCE),
    [Symbol.asyncDispose]: fetching.end,
  }
}

function isGone({ changedAt }: Pick<AssetImport, 'changedAt'>, now: Date): boolean {
  return now.getTime() - changedAt.getTime() > GONE_AFTER_MS
}

interface BeginParts {
  readonly fetching: ReturnType<typeof createFetching>
  open(request: Pick<ImportRequest, 'accountId' | 'url'>, signal: AbortSignal): Promise<FetchedFile>
}

function createBegin({ store, library, add, newId, clock }: ImportDeps, { open, fetching }: BeginParts) {
  /** A model that came from this address, under the name that it would get. */
  async function findThere({ accountId, url, tags }: ImportRequest): Promise<LibraryEntry | null> {
    const filter = {
      allTags: tags,
      anyTags: [],
      noTags: [],
      nameContains: '',
      named: null,
      metadata: { source_url: url },
    }
    const paging = { sort: 'created_at', isRising: false, limit: 1, offset: 0, after: null } as const
    const { entries } = await library.list(accountId, filter, paging)
    return entries[0] ?? null
  }

  return async function begin(request: ImportRequest): Promise<BeginOutcome> {
    const there = await findThere(request)
    if (there !== null) return { outcome: 'there', entry: there }
    const ending = new AbortController()
    let file: FetchedFile | null = null
    try {
      file = await open(request, ending.signal)
      const fields = toFields(request, file)
      await add.admit(fields)
      const now = clock.now()
      const task: AssetImport = {
        ...{ id: newId(), accountId: request.accountId, url: request.url, name: fields.fileName, status: 'running' },
        ...{ bytesTotal: file.sizeBytes, bytesDone: 0, assetId: null, error: null, createdAt: now, changedAt: now },
        expiresAt: new Date(now.getTime() + KEPT_MS),
      }
      const aliveSince = new Date(now.getTime() - GONE_AFTER_MS)
      if (!(await store.create(task, { maxRunning: MAX_RUNNING, aliveSince })))
        throw new ServiceError(
          'rate_limited',
          `at most ${MAX_RUNNING} files are fetched at a time; wait for one of them`,
        )
      fetching.start(task, { file, fields, ending })
      return { outcome: 'begun', task }
    } catch (error) {
      await file?.[Symbol.asyncDispose]()
      ending.abort()
      return toSourceFailed(error)
    }
  }
}

interface Fetch {
  readonly file: FetchedFile
  readonly fields: LibraryFields
  readonly ending: AbortController
}

const CANCELLED = new Error('cancelled')
const CLOSING = new Error('closing')

/** The fetches of this process. */
function createFetching({ store, add, clock, ticker, log }: ImportDeps, tell: (task: AssetImport) => void) {
  const running = new Map<string, { readonly ending: AbortController; readonly done: Promise<void> }>()

  async function run(begun: AssetImport, { file, fields, ending }: Fetch): Promise<void> {
    const { id, accountId } = begun
    let task = begun
    const write = async (move: Partial<ImportMove>): Promise<boolean> => {
      task = { ...task, ...move, changedAt: clock.now() }
      const isMoved = await store.move(accountId, id, task)
      if (isMoved) tell(task)
      return isMoved
    }
    let bytesDone = 0
    let writing = Promise.resolve()
    const stopTelling = ticker.every(TELL_EACH_MS, () => {
      writing = writing
        .then(() => write({ bytesDone }))
        .then((isMoved) => {
          if (!isMoved) ending.abort(CANCELLED)
        })
        .catch((error: unknown) => log.warn({ err: error }, 'how far a fetch is could not be written'))
    })
    async function* counted() {
      for await (const chunk of file.body) {
        ending.signal.throwIfAborted()
        bytesDone += chunk.length
        yield chunk
      }
    }
    tell(task)
    let end: Partial<ImportMove>
    try {
      const source = counted()
      const { signal } = ending
      const { entry } = await add.upload({
        accountId,
        source,
        describe: () => fields,
        isDescribed: true,
        assetId: null,
        signal,
      })
      end = { status: 'completed', assetId: entry.id, bytesTotal: bytesDone, bytesDone }
    } catch (error) {
      const { reason } = ending.signal
      if (reason === CANCELLED) end = { status: 'cancelled', bytesDone }
      else end = { status: 'failed', bytesDone, error: reason === CLOSING ? GONE : toImportError(error, log) }
    } finally {
      stopTelling()
      await writing
      await file[Symbol.asyncDispose]()
    }
    await write(end)
  }

  return {
    start(task: AssetImport, fetch: Fetch): void {
      const done = run(task, fetch)
        .catch((error: unknown) => log.error({ err: error }, 'the end of a fetch could not be written'))
        .finally(() => running.delete(task.id))
      running.set(task.id, { ending: fetch.ending, done })
    },
    stop: (id: string) => running.get(id)?.ending.abort(CANCELLED),
    async end(): Promise<void> {
      const all = [...running.values()]
      for (const { ending } of all) ending.abort(CLOSING)
      await Promise.all(all.map(({ done }) => done))
    },
  }
}

function toImportError(error: unknown, log: Log): ImportError {
  if (error instanceof ServiceError) return { code: error.refusal, message: error.message }
  if (error instanceof GivenFileError) return { code: error.fault, message: error.message }
  log.error({ err: error }, 'a fetch has failed')
  return { code: 'internal_error', message: 'the file could not be stored' }
}

/** Whatever is not the fault of the source is thrown on. */
function toSourceFailed(error: unknown): SourceFailed {
  if (!(error instanceof GivenFileError)) throw error
  const { fault, answered, message } = error
  return { outcome: 'source_failed', fault, status: answered, message }
}

function toFields({ fileName, ...said }: ImportRequest, file: FetchedFile): LibraryFields {
  const { tags, contentType, metadata, previewId } = said
  return { tags, contentType, metadata, previewId, fileName: fileName ?? nameOf(file) ?? 'file' }
}

function nameOf({ fileName, finalUrl }: FetchedFile): string | null {
  const path = URL.parse(finalUrl)?.pathname ?? ''
  const last = (fileName ?? path).split(/[\\/]/).at(-1) ?? ''
  try {
    return (fileName === null ? decodeURIComponent(last) : last) || null
  } catch {
    return last || null
  }
}

const MODEL_SUFFIX = /\.safetensors$/i

function toRemoteFile(file: FetchedFile, maxBytes: number): RemoteFile {
  const { sizeBytes, contentType, finalUrl } = file
  const fileName = nameOf(file)
  const problems: RemoteProblem[] = []
  if (sizeBytes !== null && sizeBytes > maxBytes)
    problems.push({
      code: 'FILE_TOO_LARGE',
      message: `a file may have at most ${maxBytes} bytes`,
      field: 'content_length',
    })
  if (fileName !== null && !MODEL_SUFFIX.test(fileName))
    problems.push({
      code: 'FORMAT_NOT_ALLOWED',
      message: 'a model must be a .safetensors file: others can carry code',
      field: 'filename',
    })
  return { sizeBytes, contentType, fileName, finalUrl, problems }
}
