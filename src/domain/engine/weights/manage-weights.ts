/**
 * Puts files of weights on engines that this process launched, and removes them. An upload comes in parts and may be gone on with
 * after any interruption; the file appears whole and checked, or not at all. Nothing that exists is ever replaced.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { NewId } from '../../../../lib/ids.ts'
import { settlesWithin } from '../../../../lib/waiting/sleep.ts'
import { invalidField, ServiceError } from '../../errors.ts'
import type { EngineDirectory } from '../directory/engine-directory.ts'
import {
  createWeightCheck,
  type FindNodes,
  mustBeAllowed,
  readWeightPath,
  refuseAll,
  refuseEngine,
  refuseUpload,
  type WeightCheck,
  type WeightRules,
} from './weight-rules.ts'
import type { HashAlgorithm, WeightDraft, WeightPath, WeightPlace } from './weight-store.ts'

interface ManagerDeps {
  /** Those that this process launched. */
  readonly places: () => readonly WeightPlace[]
  readonly directory: Pick<EngineDirectory, 'find' | 'status' | 'weights'>
  /** Left out: there can be no other process. */
  readonly findNodes?: FindNodes
  readonly rules: WeightRules
  readonly newId: NewId
  readonly clock: Clock
}

export interface WeightUpload extends WeightDraft {
  readonly engineId: string
  /** null: it is complete. */
  readonly expiresAt: Date | null
}

interface NewUpload extends WeightPath {
  /** null: the first engine that there is. */
  readonly engineId: string | null
  readonly sizeBytes: number
  readonly hash: string | null
}

interface Part {
  readonly offsetBytes: number
  readonly source: AsyncIterable<Uint8Array>
}

export type WeightManager = ReturnType<typeof createWeightManager>

const KEEP_IDLE_MS = 24 * 3_600_000
const MAX_UPLOADS = 64
// What a disk needs beside the file itself: other processes write to it, too.
const SPARE_BYTES = 64 * 1024 * 1024
// A server with many node classes takes seconds to list them. One that takes longer than this is in trouble; it is read when it can be.
const REFRESH_MS = 30_000

export function createWeightManager(deps: ManagerDeps) {
  const { places, directory } = deps
  const found = createDrafts(deps)
  const { placeOf, findAll, findOne, refreshAll } = found
  const append = createAppend(found)

  return {
    /** Throws invalid_field, not_found, weights_conflict, payload_too_large. */
    begin: createBegin(deps, found),
    async list(): Promise<readonly WeightUpload[]> {
      return (await findAll()).map(({ engineId, draft }) => ({ ...draft, engineId, expiresAt: expiryOf(draft) }))
    },
    async find(id: string): Promise<WeightUpload> {
      const { engineId, draft } = await findOne(id)
      return { ...draft, engineId, expiresAt: expiryOf(draft) }
    },
    append: (id: string, part: Part) => found.alone(id, () => append(id, part)),
    abandon: (id: string) =>
      found.alone(id, async () => {
        const { store, draft } = await findOne(id)
        await store.discard(draft)
      }),
    /** `isForced`: also while the engine has it loaded. */
    async remove(engineId: string, wanted: WeightPath, { isForced }: { readonly isForced: boolean }): Promise<void> {
      const path = readWeightPath(wanted)
      const { store } = await placeOf(engineId)
      if (!(await store.folders()).includes(path.folder)) throw invalidField('folder', 'is none of this engine')
      if (!(await store.isTaken(path))) throw missingFile()
      // Engines that were launched here may share the folder.
      const here = new Set(places().map((place) => place.engineId))
      const isLoaded = directory
        .weights()
        .some(
          (weight) =>
            weight.isLoaded && here.has(weight.engineId) && weight.folder === path.folder && weight.name === path.name,
        )
      if (isLoaded && !isForced)
        throw conflict('an engine has this file loaded; send force=true to remove it all the same')
      if (!(await store.remove(path))) throw missingFile()
      await refreshAll()
    },
  }
}

type Draft = WeightPlace & { readonly draft: WeightDraft }
type Drafts = ReturnType<typeof createDrafts>

/** The uploads under way, wherever their files lie. */
function createDrafts({ places, directory, findNodes = async () => [] }: ManagerDeps) {
  const busy = new Set<string>()

  /** Throws not_found, invalid_field. */
  async function placeOf(engineId: string | null): Promise<WeightPlace> {
    const all = places()
    const place = engineId === null ? all[0] : all.find((each) => each.engineId === engineId)
    if (place !== undefined) return place
    if (engineId === null) return refuseAll(directory.status(), findNodes)
    return refuseEngine(directory.find(engineId), findNodes)
  }

  async function findAll(): Promise<readonly Draft[]> {
    const found = new Map<string, Draft>()
    for (const place of places()) {
      // Engines that share their folders share the drafts in them.
      for (const draft of await place.store.drafts()) if (!found.has(draft.id)) found.set(draft.id, { ...place, draft })
    }
    return [...found.values()].sort((one, other) => one.draft.touchedAt.getTime() - other.draft.touchedAt.getTime())
  }

  async function findOne(id: string): Promise<Draft> {
    const found = (await findAll()).find(({ draft }) => draft.id === id)
    return found ?? refuseUpload(findNodes)
  }

  /** A job that is submitted after the answer finds the files as they are now. */
  async function refreshAll(): Promise<void> {
    await settlesWithin(Promise.all(places().map(({ store }) => store.refresh())), REFRESH_MS)
  }

  /** Only one request at a time writes, or removes, a draft. */
  async function alone<T>(id: string, work: () => Promise<T>): Promise<T> {
    if (busy.has(id))
      throw conflict('another request is at work on this upload; wait for its end, then ask how far it is')
    busy.add(id)
    try {
      return await work()
    } finally {
      busy.delete(id)
    }
  }

  return { busy, placeOf, findAll, findOne, refreshAll, alone }
}

const expiryOf = ({ touchedAt }: WeightDraft) => new Date(touchedAt.getTime() + KEEP_IDLE_MS)

function createBegin({ rules, newId, clock }: ManagerDeps, { busy, placeOf, findAll }: Drafts) {
  let latest: Promise<unknown> = Promise.resolve()

  /** One after the other: two uploads of one name that begin at once must not both find it free. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = latest.then(work)
    latest = result.catch(() => {})
    return result
  }

  async function removeExpired(): Promise<void> {
    for (const { store, draft } of await findAll())
      if (expiryOf(draft) <= clock.now() && !busy.has(draft.id)) await store.discard(draft)
  }

  async function mustHaveRoom({ store }: WeightPlace, { folder, sizeBytes }: NewUpload): Promise<void> {
    const open = await store.drafts()
    if (open.length >= MAX_UPLOADS)
      throw conflict(`there are ${MAX_UPLOADS} uploads under way; finish or give up some of them first`)
    const toCome = open.reduce((sum, draft) => sum + draft.sizeBytes - draft.offsetBytes, 0)
    const free = Math.max(0, (await store.freeBytes(folder)) - toCome - SPARE_BYTES)
    if (sizeBytes > free)
      throw new ServiceError('payload_too_large', `the disk of this folder has room for ${free} bytes; make some`, {
        details: { left_bytes: free },
      })
  }

  async function beginNow(wish: NewUpload): Promise<WeightUpload> {
    const path = readWeightPath(wish)
    mustBeAllowed(path, rules)
    const place = await placeOf(wish.engineId)
    const { engineId, store } = place
    const folders = await store.folders()
    if (!folders.includes(path.folder))
      throw invalidField('folder', 'is none of this engine', { folders: folders.slice(0, MAX_NAMED) })
    await removeExpired()
    const rival = (await store.drafts()).find((draft) => draft.folder === path.folder && draft.name === path.name)
    if (rival !== undefined)
      throw conflict('a file of this name is being uploaded; go on with that upload, or give it up', {
        upload_id: rival.id,
      })
    if (await store.isTaken(path)) throw conflict('there is a file of this name already; remove it first')
    await mustHaveRoom(place, wish)
    const { sizeBytes, hash } = wish
    const draft = { ...path, id: newId(), sizeBytes, hash, offsetBytes: 0, touchedAt: clock.now() }
    await store.create(draft)
    return { ...draft, engineId, expiresAt: expiryOf(draft) }
  }

  return (wish: NewUpload) => inTurn(() => beginNow(wish))
}

function createAppend({ findOne, refreshAll }: Drafts) {
  async function finish({ engineId, store, draft }: Draft) {
    const hash = await store.hash(draft, algorithmOf(draft.hash))
    if (draft.hash !== null && hash !== draft.hash) {
      await store.discard(draft)
      throw new ServiceError('hash_mismatch', 'the bytes are not those of the hash; nothing of them was kept', {
        details: { expected: draft.hash, actual: hash },
      })
    }
    if ((await store.publish(draft, hash)) === 'taken')
      throw conflict('another file got this name meanwhile; remove that, then send an empty part', {
        offset_bytes: draft.offsetBytes,
      })
    await refreshAll()
    return { ...draft, hash, engineId, expiresAt: null }
  }

  async function appendNow(id: string, { offsetBytes, source }: Part): Promise<WeightUpload> {
    const found = await findOne(id)
    const { engineId, store, draft } = found
    if (offsetBytes !== draft.offsetBytes)
      throw conflict(`the next part begins at ${draft.offsetBytes}`, { offset_bytes: draft.offsetBytes })
    const check = refusing(createWeightCheck(draft))
    try {
      const left = draft.sizeBytes - draft.offsetBytes
      const after = await store.append(draft, withinSize(source, left), check.look)
      if (after.offsetBytes < after.sizeBytes) return { ...after, engineId, expiresAt: expiryOf(after) }
      check.end()
      return await finish({ ...found, draft: after })
    } catch (error) {
      if (check.hasRefused()) await store.discard(draft)
      throw error
    }
  }

  return appendNow
}

const MAX_NAMED = 64

function conflict(message: string, details: Readonly<Record<string, unknown>> = {}): ServiceError {
  return new ServiceError('weights_conflict', message, { details })
}

function missingFile(): ServiceError {
  return new ServiceError('not_found', 'there is no such file on this engine')
}

function algorithmOf(hash: string | null): HashAlgorithm {
  return hash?.startsWith('sha256:') === true ? 'sha256' : 'blake3'
}

/** Remembers that the bytes themselves were refused: then nothing of them is kept. */
function refusing(check: WeightCheck) {
  let refused = false
  const watch = <T>(error: T): T => {
    refused = true
    return error
  }
  return {
    hasRefused: () => refused,
    look: (bytes: Parameters<WeightCheck['look']>[0]) =>
      check.look(bytes).catch((error: unknown) => {
        throw watch(error)
      }),
    end() {
      try {
        check.end()
      } catch (error) {
        throw watch(error)
      }
    },
  }
}

async function* withinSize(source: AsyncIterable<Uint8Array>, leftBytes: number): AsyncGenerator<Uint8Array> {
  let left = leftBytes
  for await (const chunk of source) {
    left -= chunk.length
    if (left < 0) throw new ServiceError('payload_too_large', 'more bytes came than the upload was begun with')
    yield chunk
  }
}
