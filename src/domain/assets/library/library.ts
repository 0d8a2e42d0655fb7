/**
 * An account's files as a library: listed by tags, names and metadata, described by their owner, and removed. It shows the newest files
 * of each shelf, up to a bound; older ones are still found by their id. Weights that only engines have are shown beside the account's
 * own and cannot be changed. What an owner says here changes nothing of what the Jobs API shows.
 */
import type { Clock } from '../../../../lib/clock.ts'
import { isUuid } from '../../../../lib/ids.ts'
import { hasAtMost } from '../../../../lib/text/cut-text.ts'
import { invalidField, ServiceError } from '../../errors.ts'
import type { AssetStore } from '../asset-store.ts'
import { readContentType, readTags } from '../create/asset-fields.ts'
import {
  type InstalledWeights,
  type LibraryEntry,
  readOwnTags,
  shelvesOf,
  toEntry,
  toInstalledEntry,
} from './library-entry.ts'
import {
  countTags,
  fits,
  type LibraryFilter,
  type LibraryPage,
  type LibraryPaging,
  type TagCount,
  toPage,
} from './library-query.ts'
import type { AssetNote, LibraryShelf, LibraryStore, NotedAsset } from './library-store.ts'

/** What is left out stays as it is. */
export interface LibraryChange {
  readonly name?: string
  readonly contentType?: string
  readonly tags?: readonly string[]
  /** A JSON object as text. */
  readonly metadata?: string
  readonly previewId?: string | null
}

interface TagsAdded {
  readonly entry: LibraryEntry
  readonly added: readonly string[]
  readonly present: readonly string[]
}

interface TagsRemoved {
  readonly entry: LibraryEntry
  readonly removed: readonly string[]
  readonly absent: readonly string[]
}

/** Every id that is not the account's own looks like one that does not exist: `not_found`. */
export interface Library {
  list(accountId: string, filter: LibraryFilter, paging: LibraryPaging): Promise<LibraryPage>
  countTags(accountId: string, filter: LibraryFilter): Promise<readonly TagCount[]>
  find(accountId: string, id: string): Promise<LibraryEntry>
  /** Throws `invalid_field`, and `forbidden` for weights of engines. */
  change(accountId: string, id: string, change: LibraryChange): Promise<LibraryEntry>
  addTags(accountId: string, id: string, tags: readonly string[]): Promise<TagsAdded>
  removeTags(accountId: string, id: string, tags: readonly string[]): Promise<TagsRemoved>
  /** Removes the record; an output of a job that is still kept is only shown no more, and goes with its job. */
  remove(accountId: string, id: string): Promise<void>
}

interface LibraryDeps {
  readonly store: LibraryStore
  readonly assets: Pick<AssetStore, 'remove' | 'findNewestByHash'>
  /** What engines have, whoever asks. */
  readonly installed: () => readonly InstalledWeights[]
  readonly clock: Clock
}

/** How much of each shelf a list looks at. */
const SHELF_SIZE = 10_000

export function createLibrary(deps: LibraryDeps): Library {
  const { store, assets, installed, clock } = deps
  const walk = createWalk(deps)
  const edit = createEdit(deps)

  return {
    async list(accountId, filter, paging) {
      return toPage(await walk(accountId, filter), paging)
    },
    async countTags(accountId, filter) {
      return countTags(await walk(accountId, filter))
    },
    async find(accountId, id) {
      const asset = await findShown(store, { accountId, id, now: clock.now() })
      if (asset !== null) return toEntry(asset)
      const weights = installed()
        .map(toInstalledEntry)
        .find((entry) => entry.id === id)
      if (weights === undefined) throw notFound()
      return weights
    },
    async change(accountId, id, change) {
      const noted = readChange(change)
      return (await edit(accountId, id, () => noted)).after
    },
    async addTags(accountId, id, tags) {
      const wanted = readOwnTags(tags)
      const { before, after } = await edit(accountId, id, ({ ownTags, tags: all }) => ({
        tags: readTags([...ownTags, ...wanted.filter((tag) => !all.includes(tag))]),
      }))
      const had = (tag: string) => before.tags.includes(tag)
      return { entry: after, added: wanted.filter((tag) => !had(tag)), present: wanted.filter(had) }
    },
    async removeTags(accountId, id, tags) {
      const unwanted = readTags(tags)
      const { before, after } = await edit(accountId, id, ({ tags: all, ownTags }) => {
        const fixed = unwanted.find((tag) => all.includes(tag) && !ownTags.includes(tag))
        if (fixed !== undefined)
          throw invalidField('tags', `cannot lose ${fixed}: it says where the file is kept; upload it to another place`)
        return { tags: ownTags.filter((tag) => !unwanted.includes(tag)) }
      })
      const had = (tag: string) => before.ownTags.includes(tag)
      return { entry: after, removed: unwanted.filter(had), absent: unwanted.filter((tag) => !had(tag)) }
    },
    async remove(accountId, id) {
      if ((await findShown(store, { accountId, id, now: clock.now() })) === null) throw missing(deps, id)
      const outcome = await assets.remove(accountId, id, clock.now())
      if (outcome === 'not_found') throw notFound()
      if (outcome === 'in_use') await edit(accountId, id, () => ({ isHidden: true }))
    },
  }
}

/** All that fits, in no order. */
function createWalk({ store, assets, installed, clock }: LibraryDeps) {
  return async function walk(accountId: string, filter: LibraryFilter): Promise<readonly LibraryEntry[]> {
    const now = clock.now()
    const hash = readHash(filter.named)
    const shelves = shelvesToWalk(filter)
    const found =
      hash === null
        ? (
            await Promise.all(shelves.map((shelf) => store.listNewest(accountId, { shelf, limit: SHELF_SIZE, now })))
          ).flat()
        : await byHash(accountId, hash, now)
    const own = found.filter(isShown).map(toEntry)
    const paths = new Set(own.map(({ filePath }) => filePath))
    const weights = shelves.includes('models') && hash === null ? installed().map(toInstalledEntry) : []
    // Weights that the account has uploaded, and an engine lists, are its own.
    const others = weights.filter(({ filePath }) => !paths.has(filePath))
    const rest = hash === null ? filter : { ...filter, named: null }
    return [...own, ...others].filter((entry) => fits(entry, rest))
  }

  async function byHash(accountId: string, hash: string, now: Date): Promise<NotedAsset[]> {
    const ids = (await assets.findNewestByHash(accountId, [hash], now)).map(({ id }) => id)
    return store.findNoted(accountId, ids, now)
  }
}

function shelvesToWalk({ allTags, anyTags }: LibraryFilter): readonly LibraryShelf[] {
  const byAll = shelvesOf(allTags)
  const byAny = anyTags.length === 0 ? byAll : anyTags.flatMap((tag) => shelvesOf([tag]))
  return byAll.filter((shelf) => byAny.includes(shelf))
}

/** Also as the name that a hosted service gives stored files, `<hash>.png`. */
function readHash(named: string | null): string | null {
  return /^(?:blake3:)?([0-9a-f]{64})(?:\.\w{1,8})?$/i.exec(named ?? '')?.[1]?.toLowerCase() ?? null
}

interface Wanted {
  readonly accountId: string
  readonly id: string
  readonly now: Date
}

async function findShown(store: LibraryStore, { accountId, id, now }: Wanted): Promise<NotedAsset | null> {
  const [asset] = isUuid(id) ? await store.findNoted(accountId, [id], now) : []
  return asset !== undefined && isShown(asset) ? asset : null
}

function isShown({ note }: NotedAsset): boolean {
  return note?.isHidden !== true
}

const NOTHING_NOTED = { name: null, contentType: null, tags: null, metadata: null, previewId: null, isHidden: false }
// Each try fails only where another change was made in between.
const TRIES = 8

/** Changes what is noted of a file, from what is noted at that moment. */
function createEdit(deps: LibraryDeps) {
  const { store, clock } = deps
  return async function edit(
    accountId: string,
    id: string,
    change: (current: LibraryEntry) => Partial<AssetNote>,
  ): Promise<{ readonly before: LibraryEntry; readonly after: LibraryEntry }> {
    for (let tries = 0; tries < TRIES; tries++) {
      const now = clock.now()
      const asset = await findShown(store, { accountId, id, now })
      if (asset === null) throw missing(deps, id)
      const { note: from } = asset
      const before = toEntry(asset)
      const to = { ...NOTHING_NOTED, ...from, ...change(before), changedAt: now.getTime() }
      if (await store.replaceNote(accountId, id, { from, to, now }))
        return { before, after: toEntry({ ...asset, note: to }) }
    }
    throw new ServiceError('overloaded', 'this asset is being changed by many at once; send the request again')
  }
}

const NAME_MAX_LENGTH = 255
const METADATA_MAX_BYTES = 16 * 1024
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are exactly what is refused
const UNSAFE = /[\x00-\x1f\x7f-\x9f]/

/** What a change notes. The id of a preview is only an id: it may be gone tomorrow, and whose it is is asked when it is shown. */
export function readChange({ name, contentType, tags, metadata, previewId }: LibraryChange): Partial<AssetNote> {
  return {
    ...(name !== undefined && { name: readName(name) }),
    ...(contentType !== undefined && { contentType: readContentType(contentType, 'mime_type') }),
    ...(tags !== undefined && { tags: readOwnTags(tags) }),
    ...(metadata !== undefined && { metadata: readMetadata(metadata) }),
    ...(previewId !== undefined && { previewId: readPreviewId(previewId) }),
  }
}

function readName(name: string): string {
  const isFit = name !== '' && hasAtMost(name, NAME_MAX_LENGTH) && name.isWellFormed() && !UNSAFE.test(name)
  if (isFit) return name
  throw invalidField('name', `must have 1 to ${NAME_MAX_LENGTH} characters, without control characters`)
}

function readMetadata(text: string): string {
  if (Buffer.byteLength(text) > METADATA_MAX_BYTES)
    throw invalidField('user_metadata', `may have at most ${METADATA_MAX_BYTES} bytes`)
  return text
}

function readPreviewId(id: string | null): string | null {
  if (id === null || isUuid(id)) return id
  throw invalidField('preview_id', 'must be the id of an asset')
}

function notFound(): ServiceError {
  return new ServiceError('not_found', 'there is no asset with this id')
}

function missing({ installed }: Pick<LibraryDeps, 'installed'>, id: string): ServiceError {
  if (!installed().some((weights) => toInstalledEntry(weights).id === id)) return notFound()
  return new ServiceError('forbidden', 'these weights belong to the operator of the service and cannot be changed')
}
