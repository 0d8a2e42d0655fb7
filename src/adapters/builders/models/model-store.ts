/**
 * Models by their content: `models/<first two digits>/<sha256>`, each once, however many releases link to it. What is being fetched
 * lies aside and gets its name when all of it is there and checked, so that every file with a name is whole. A fetch that was cut
 * off goes on where it was. What an address gave at its first fetch is remembered, so that it must give the same again.
 */
import { createHash } from 'node:crypto'
import { chmod, type FileHandle, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { takeLock } from '../../../../lib/files/file-lock.ts'
import { hashFile } from '../../../../lib/files/file-tree.ts'
import { nullWhenMissing } from '../../../../lib/files/inside-folder.ts'
import { writeFileWhole } from '../../../../lib/files/write-file-whole.ts'
import { createWeightCheck, mustBeAllowed, type WeightRules } from '../../../domain/engine/weights/weight-rules.ts'
import { BuildFailure } from '../../../domain/environments/builder.ts'
import type { DefinedModel } from '../../../domain/environments/definition.ts'
import type { LockedModel } from '../../../domain/environments/lock.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { isFullDisk, type Step } from '../workshop.ts'
import { type Advice, BUILD_ADVICE, type FetchRange } from './fetch-range.ts'
import { openFromFolders } from './model-folders.ts'

interface ModelWish {
  readonly model: DefinedModel
  /** What the lock says; null: it is frozen now. */
  readonly frozen: LockedModel | null
  /** Of an uploaded model. */
  readonly openBlob: (blobId: string) => Promise<NodeJS.ReadableStream>
  readonly onProgress?: StoreOptions['onProgress']
}

const SHA256 = /^[0-9a-f]{64}$/
const FETCH_TRIES = 5

/** What a fetch needs of the build that it belongs to, or of a command that stands alone. */
type FetchStep = Pick<Step, 'say' | 'signal' | 'scratch'>

interface StoreOptions {
  readonly fetchRange: FetchRange
  /** Where models lie that name no source. Left out: nowhere. */
  readonly folders?: readonly string[]
  readonly advice?: Advice
  readonly onProgress?: (doneBytes: number, totalBytes: number | null) => void
  readonly rules: WeightRules
  readonly maxBytes: number
}

interface Fetching extends Pick<ModelWish, 'onProgress'> {
  readonly what: string
  readonly model: DefinedModel
  /** In hex; null: whatever comes. */
  readonly expected: string | null
}

export class ModelStore {
  readonly #root: string
  readonly #models: string
  readonly #options: StoreOptions

  constructor(root: string, options: StoreOptions) {
    this.#root = root
    this.#models = join(root, 'models')
    this.#options = options
  }

  pathOf(sha256: string): string {
    return join(this.#models, sha256.slice(0, 2), sha256)
  }

  /** Brings a model into the store, unless it is there. Throws BuildFailure. */
  async bring(step: FetchStep, wish: ModelWish): Promise<LockedModel> {
    const { model, frozen } = wish
    const what = `model ${model.type}/${model.filename}`
    mayBe(what, model, this.#options.rules)
    const known = model.sourceUri === undefined ? null : await readBook(this.#bookOf(model.sourceUri))
    const expected = frozen?.sha256 ?? model.sha256?.toLowerCase() ?? known
    if (expected !== null && !SHA256.test(expected))
      throw new BuildFailure('start', `${what}: its sha256 is not 64 hex digits; correct it`)
    const from = model.sourceUri === undefined ? (model.blobId === undefined ? 'fleet' : 'blob') : 'address'
    let sha256 = expected
    if (sha256 === null || (await this.#sizeOf(sha256)) === null) {
      step.say(
        `${what}: ${from === 'address' ? `fetching it from ${hostOf(model.sourceUri)}` : `taking it from ${from === 'blob' ? 'the upload' : 'a folder of models of this machine'}`}`,
      )
      const parts = join(this.#models, 'parts')
      await mkdir(parts, { recursive: true })
      const { onProgress = this.#options.onProgress } = wish
      const fetching = { what, model, expected, ...(onProgress !== undefined && { onProgress }) }
      if (model.sourceUri !== undefined) sha256 = await this.#fromAddress(step, fetching, model.sourceUri)
      else {
        const { blobId } = model
        const { folders = [] } = this.#options
        const source = await (blobId === undefined ? openFromFolders(folders, model) : wish.openBlob(blobId))
        sha256 = await this.#fromStream(step, fetching, source)
      }
    }
    const sizeBytes = (await this.#sizeOf(sha256)) ?? 0
    return { type: model.type, filename: model.filename, sha256, sizeBytes, from }
  }

  /** Removes what is not in `kept` and was fetched before then; null: whenever. Resolves with the bytes that were freed. */
  async keepOnly(kept: ReadonlySet<string>, fetchedBefore: Date | null): Promise<number> {
    let freed = 0
    for (const folder of (await readdir(this.#models).catch(nullWhenMissing)) ?? []) {
      if (folder === 'addresses') continue
      for (const name of await readdir(join(this.#models, folder))) {
        if (folder !== 'parts' && kept.has(name)) continue
        const path = join(this.#models, folder, name)
        const found = await stat(path).catch(nullWhenMissing)
        if (found === null || (fetchedBefore !== null && found.mtime >= fetchedBefore)) continue
        freed += found.size
        await rm(path, { force: true })
      }
    }
    return freed
  }

  #bookOf(address: string): string {
    return join(this.#models, 'addresses', `${keyOf(address)}.json`)
  }

  async #sizeOf(sha256: string): Promise<number | null> {
    return (await stat(this.pathOf(sha256)).catch(nullWhenMissing))?.size ?? null
  }

  /** Whole and checked, under its name. */
  async #keep(part: string, sha256: string): Promise<void> {
    await using file = await open(part, 'r')
    await file.datasync()
    await mkdir(join(this.#models, sha256.slice(0, 2)), { recursive: true })
    // Releases of several accounts link to it: nobody writes through a link.
    await chmod(part, 0o444)
    await rename(part, this.pathOf(sha256))
  }

  async #fromAddress(step: FetchStep, fetching: Fetching, address: string): Promise<string> {
    const { what, model, expected } = fetching
    const part = join(this.#models, 'parts', keyOf(address))
    using _lock = await takeLock(join(this.#root, 'locks', `model-${keyOf(address)}.lock`), step.signal)
    try {
      await this.#download(step, { ...this.#options, ...fetching, address, part })
    } catch (error) {
      // What came is kept for another time, but not where it has filled the disk, or is more than is ever taken.
      if (isFullDisk(error) || error instanceof TooLarge) await removePart(part)
      throw error
    }
    const sha256 = await hashFile(part)
    try {
      mustHaveHash(what, expected, sha256)
      await check(part, model, what)
    } catch (error) {
      await removePart(part)
      throw error
    }
    await this.#keep(part, sha256)
    await rm(`${part}.tag`, { force: true })
    await mkdir(join(this.#models, 'addresses'), { recursive: true })
    await writeFileWhole(this.#bookOf(address), JSON.stringify({ sha256 }), { mode: 0o600, isDurable: true })
    return sha256
  }

  async #download(step: FetchStep, wanted: Download): Promise<void> {
    const { what } = wanted
    for (let tries = 1; ; tries++) {
      try {
        return await download(step, wanted)
      } catch (error) {
        if (!(error instanceof Cut)) throw error
        if (tries === FETCH_TRIES)
          throw new BuildFailure(
            'freeze',
            `${what}: ${error.message}; ${(wanted.advice ?? BUILD_ADVICE).again} to go on`,
          )
        step.say(`${what}: ${error.message}; going on`)
      }
    }
  }

  async #fromStream(
    step: FetchStep,
    { what, model, expected, onProgress }: Fetching,
    source: NodeJS.ReadableStream,
  ): Promise<string> {
    const part = join(this.#models, 'parts', keyOf(`${step.scratch}:${what}`))
    try {
      const hash = createHash('sha256')
      {
        await using file = await open(part, 'w', 0o600)
        let at = 0
        for await (const chunk of source) {
          step.signal.throwIfAborted()
          hash.update(chunk as Buffer)
          await writeAll(file, chunk as Buffer)
          at += (chunk as Buffer).length
          onProgress?.(at, null)
        }
      }
      const sha256 = hash.digest('hex')
      mustHaveHash(what, expected, sha256)
      await check(part, model, what)
      await this.#keep(part, sha256)
      return sha256
    } finally {
      await rm(part, { force: true })
    }
  }
}

async function removePart(part: string): Promise<void> {
  await rm(part, { force: true })
  await rm(`${part}.tag`, { force: true })
}

function keyOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 40)
}

function hostOf(address = ''): string {
  return URL.parse(address)?.host ?? 'an address that is none'
}

async function readBook(path: string): Promise<string | null> {
  const text = await readFile(path, 'utf8').catch(nullWhenMissing)
  if (text === null) return null
  const { sha256 } = JSON.parse(text) as { readonly sha256?: unknown }
  return typeof sha256 === 'string' && SHA256.test(sha256) ? sha256 : null
}

function mustHaveHash(what: string, expected: string | null, sha256: string): void {
  if (expected === null || sha256 === expected) return
  throw new BuildFailure(
    'freeze',
    `${what}: its sha256 is ${sha256}, and ${expected} was wanted; the file was changed where it lies, or the sha256 of the build is wrong`,
  )
}

const SAFE = /^(?!\.)[^\\/:\0]{1,255}$/

function mayBe(what: string, { type, filename }: DefinedModel, rules: WeightRules): void {
  if (![...type.split('/'), filename].every((part) => SAFE.test(part)))
    throw new BuildFailure('start', `${what}: its folder or name leads elsewhere; rename it`)
  try {
    mustBeAllowed({ folder: type, name: filename }, rules)
  } catch (error) {
    throw error instanceof ServiceError ? new BuildFailure('start', `${what}: ${error.message}`) : error
  }
}

async function check(part: string, { type, filename }: DefinedModel, what: string): Promise<void> {
  const { size } = await stat(part)
  const draft = {
    id: '',
    folder: type,
    name: filename,
    sizeBytes: size,
    hash: null,
    offsetBytes: size,
    touchedAt: new Date(0),
  }
  await using file = await open(part, 'r')
  const judge = createWeightCheck(draft)
  try {
    await judge.look({
      lengthBytes: size,
      async read(start, length) {
        const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, start)
        return buffer.subarray(0, bytesRead)
      },
    })
    judge.end()
  } catch (error) {
    throw error instanceof ServiceError ? new BuildFailure('freeze', `${what}: ${error.message}`) : error
  }
}

/** The connection ended early; what came is kept. */
class Cut extends Error {}

class TooLarge extends BuildFailure {}

interface Download extends Pick<StoreOptions, 'onProgress'> {
  readonly what: string
  readonly address: string
  readonly part: string
  readonly maxBytes: number
  readonly fetchRange: FetchRange
  readonly advice?: Advice
}

const TELL_EVERY_BYTES = 512 * 1024 * 1024

async function download(
  step: FetchStep,
  { what, address, part, maxBytes, fetchRange, onProgress }: Download,
): Promise<void> {
  const from = (await stat(part).catch(nullWhenMissing))?.size ?? 0
  const tag = from === 0 ? null : await readFile(`${part}.tag`, 'utf8').catch(nullWhenMissing)
  await using answer = await fetchRange(address, { from: tag === null ? 0 : from, tag, signal: step.signal }).catch(
    (error: unknown) => {
      throw error instanceof Error && !step.signal.aborted
        ? new BuildFailure('freeze', `${what}: ${error.message}`)
        : error
    },
  )
  if (answer.totalBytes !== null && answer.totalBytes > maxBytes)
    throw new TooLarge('freeze', `${what}: it has ${answer.totalBytes} bytes; at most ${maxBytes} are taken`)
  if (answer.tag !== null) await writeFileWhole(`${part}.tag`, answer.tag, { mode: 0o600, isDurable: false })
  await using file = await open(part, answer.start === 0 ? 'w' : 'r+', 0o600)
  let at = answer.start
  let told = at
  try {
    for await (const chunk of answer.body) {
      await writeAll(file, chunk, at)
      at += chunk.length
      onProgress?.(at, answer.totalBytes)
      if (at > maxBytes) throw new TooLarge('freeze', `${what}: it has more than the ${maxBytes} bytes that are taken`)
      if (at - told < TELL_EVERY_BYTES) continue
      told = at
      step.say(`${what}: ${at} of ${answer.totalBytes ?? 'unknown'} bytes`)
    }
  } catch (error) {
    step.signal.throwIfAborted()
    if (error instanceof BuildFailure || isFullDisk(error)) throw error
    throw new Cut(`the connection broke after ${at} bytes`)
  }
  if (answer.totalBytes !== null && at < answer.totalBytes)
    throw new Cut(`the connection ended after ${at} of ${answer.totalBytes} bytes`)
}

async function writeAll(file: FileHandle, bytes: Uint8Array, position: number | null = null): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    // A nearly full disk takes a part of a write; only the next one fails.
    const { bytesWritten } = await file.write(
      bytes,
      done,
      bytes.length - done,
      position === null ? null : position + done,
    )
    done += bytesWritten
  }
}
