/**
 * The form of an edit: texts, pictures and a mask, in any order. Pictures stream to where files are kept and get a name only once the
 * request is known to be sound; a mask is small, and is held because it has to be rewritten.
 */
import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { SNIFF_BYTES, sniffType } from '../../../lib/files/mime.ts'
import type { JsonObject } from '../../../lib/json/lossless-json.ts'
import type { Asset } from '../../domain/assets/asset.ts'
import type { NamedFiles, ReceivedFile } from '../../domain/assets/named-files.ts'
import { invalidField, ServiceError } from '../../domain/errors.ts'
import { claimOf } from '../kit/bodies/body-memory.ts'
import { FormReader } from '../kit/bodies/form-reader.ts'
import {
  FORM_AROUND_MAX_BYTES,
  openFormChunks,
  PART_HEAD_MAX_BYTES,
  readBoundary,
  readPartHead,
  toFormRefusal,
} from '../kit/bodies/multipart.ts'

export interface EditForm {
  /** Texts. */
  readonly fields: JsonObject
  readonly images: readonly SentPicture[]
  readonly mask: Uint8Array | null
  /** Of all parts: boundaries differ from one send of the same form to the next. */
  readonly digest: string
  /** To be called in any case: gives up what was not kept. */
  dispose(): Promise<void>
}

interface SentPicture {
  readonly sizeBytes: number
  /** Records it as a file of the account. */
  keep(): Promise<Asset>
}

interface FormDeps {
  readonly files: Pick<NamedFiles, 'receive'>
  readonly accountId: string
}

const MAX_FIELDS = 64
const MAX_FIELD_BYTES = 1024 * 1024
const MAX_PICTURES = 16
const MAX_PICTURE_BYTES = 50 * 1024 * 1024
const MAX_MASK_BYTES = 16 * 1024 * 1024
const PICTURE_FIELDS: ReadonlySet<string> = new Set(['image', 'image[]', 'images', 'images[]'])

export async function readEditForm(request: FastifyRequest, deps: FormDeps): Promise<EditForm> {
  const form = new Form(request, deps)
  try {
    await form.read()
    return form
  } catch (error) {
    await form.dispose()
    throw toFormRefusal(error)
  }
}

class Form implements EditForm {
  readonly fields: Record<string, string> = {}
  readonly images: SentPicture[] = []
  mask: Uint8Array | null = null
  readonly #request: FastifyRequest
  readonly #deps: FormDeps
  readonly #reader: FormReader
  readonly #hash = createHash('sha256')
  readonly #pending = new Set<ReceivedFile>()

  constructor(request: FastifyRequest, deps: FormDeps) {
    this.#request = request
    this.#deps = deps
    const boundary = readBoundary(request.headers['content-type'] ?? '')
    this.#reader = new FormReader(openFormChunks(request.raw), boundary)
  }

  get digest(): string {
    return this.#hash.copy().digest('base64url')
  }

  async read(): Promise<void> {
    const reader = this.#reader
    await reader.skipPreamble(FORM_AROUND_MAX_BYTES)
    for (;;) {
      const head = await reader.nextHead(PART_HEAD_MAX_BYTES)
      if (head === null) break
      await this.#readPart(readPartHead(head))
    }
    await reader.skipEpilogue(FORM_AROUND_MAX_BYTES)
  }

  async #readPart({ name, fileName }: { readonly name: string; readonly fileName: string | null }): Promise<void> {
    this.#hash.update(`${JSON.stringify([name, fileName])}\n`)
    const shown = name.slice(0, 64)
    if (fileName === null) {
      if (Object.hasOwn(this.fields, name)) throw invalidField(shown, 'may be sent only once')
      if (Object.keys(this.fields).length === MAX_FIELDS) throw invalidField(shown, 'is one part too many')
      const bytes = await this.#reader.readBody(MAX_FIELD_BYTES)
      this.#hash.update(bytes)
      // Defined and not assigned: a part may be called `__proto__`.
      Object.defineProperty(this.fields, name, { value: bytes.toString('utf8'), enumerable: true })
    } else if (name === 'mask') {
      if (this.mask !== null) throw invalidField('mask', 'may be sent only once')
      this.mask = await this.#reader.readBody(MAX_MASK_BYTES)
      claimOf(this.#request.raw).take(this.mask.byteLength)
      this.#hash.update(this.mask)
    } else if (PICTURE_FIELDS.has(name)) await this.#readPicture(fileName)
    else throw invalidField(shown, 'is not expected as a file; there are image, image[] and mask')
  }

  async #readPicture(fileName: string): Promise<void> {
    if (this.images.length === MAX_PICTURES) throw invalidField('image', `may be sent at most ${MAX_PICTURES} times`)
    const { accountId, files } = this.#deps
    const seen: { start: Buffer; sizeBytes: number } = { start: Buffer.alloc(0), sizeBytes: 0 }
    const received = await files.receive(this.#watch(seen), { accountId })
    this.#pending.add(received)
    const contentType = sniffType(seen.start)
    if (contentType === null || !contentType.startsWith('image/') || contentType === 'image/svg+xml')
      throw invalidField('image', 'must be a picture, such as PNG, JPEG or WebP')
    const name = toFileName(fileName, contentType)
    this.images.push({
      sizeBytes: seen.sizeBytes,
      keep: () => {
        this.#pending.delete(received)
        return received.place({ accountId, folder: 'input', name, contentType, overwrite: false })
      },
    })
  }

  async *#watch(seen: { start: Buffer; sizeBytes: number }): AsyncGenerator<Uint8Array> {
    for await (const chunk of this.#reader.streamBody()) {
      if (seen.start.length < SNIFF_BYTES) seen.start = Buffer.concat([seen.start, chunk.subarray(0, SNIFF_BYTES)])
      seen.sizeBytes += chunk.length
      if (seen.sizeBytes > MAX_PICTURE_BYTES)
        throw new ServiceError('payload_too_large', `a picture may have at most ${MAX_PICTURE_BYTES} bytes`, {
          details: { field: 'image' },
        })
      this.#hash.update(chunk)
      yield chunk
    }
  }

  async dispose(): Promise<void> {
    this.#reader.close()
    const pending = [...this.#pending]
    this.#pending.clear()
    for (const file of pending) await file.discard()
  }
}

/** A plain name of bounded length, whatever the sender calls it. */
function toFileName(fileName: string, contentType: string): string {
  const plain = fileName
    .replace(/^.*[/\\]/, '')
    .replaceAll(/[^\w.-]+/g, '_')
    .replace(/^\.+/, '')
    .slice(-80)
  return plain === '' ? `image.${contentType.slice('image/'.length)}` : plain
}
