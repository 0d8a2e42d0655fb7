/**
 * Packs that are published under an id and a version: in a registry that is asked over HTTP, in the words of the public one
 * (`GET /nodes/<id>/install?version=`, `GET /comfy-nodes/<class>/node`), or in a folder that holds `<id>/<version>.zip`.
 */
import { createWriteStream } from 'node:fs'
import { copyFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { nullWhenMissing } from '../../../../lib/files/inside-folder.ts'
import { isJsonObject } from '../../../../lib/json/lossless-json.ts'
import { ExchangeError } from '../../../../lib/outbound/exchange.ts'
import { BlockedAddressError } from '../../../../lib/outbound/network.ts'
import type { PackRegistry, PublishedPack } from '../../../domain/environments/pack-registry.ts'
import { mustStayEncrypted, type OutboundRules, openBuildFetcher } from '../models/fetch-range.ts'

export type RegistrySource =
  /** Without a slash at its end. */
  { readonly kind: 'address'; readonly address: string } | { readonly kind: 'folder'; readonly path: string }

export interface OpenedRegistry extends PackRegistry, AsyncDisposable {
  /** For failures and the log. */
  readonly name: string
  find(id: string, version: string | null): Promise<RegistryPack | null>
  /** Writes the zip. Throws as `find` does. */
  download(pack: RegistryPack, into: string, signal: AbortSignal): Promise<void>
}

interface RegistryPack extends PublishedPack {
  /** An address or a path. */
  readonly zip: string
}

const ID = /^[a-z0-9][a-z0-9._-]{0,99}$/i
const VERSION = /^\d{1,9}\.\d{1,9}\.\d{1,9}$/
const ANSWER_MS = 8_000
const MAX_ANSWER_BYTES = 1024 * 1024
const MAX_ZIP_MS = 1_800_000
const MAX_ZIP_BYTES = 4 * 1024 ** 3
const STATES: Readonly<Record<string, PublishedPack['state']>> = {
  NodeVersionStatusActive: 'active',
  NodeVersionStatusPending: 'pending',
  NodeVersionStatusBanned: 'withdrawn',
  NodeVersionStatusDeleted: 'withdrawn',
  NodeVersionStatusFlagged: 'withdrawn',
}

export function openRegistry(source: RegistrySource, rules: OutboundRules): OpenedRegistry {
  return source.kind === 'folder' ? openFolder(source.path) : openAddress(source.address, rules)
}

function openFolder(folder: string): OpenedRegistry {
  return {
    name: 'the folder of published packs',
    async find(id, version) {
      if (!ID.test(id)) return null
      const names = (await readdir(join(folder, id)).catch(nullWhenMissing)) ?? []
      const versions = names.flatMap((name) => (name.endsWith('.zip') ? [name.slice(0, -'.zip'.length)] : []))
      const found = versions.filter((each) => VERSION.test(each) && (version === null || each === version))
      const newest = found.toSorted((one, other) => compare(other, one))[0]
      if (newest === undefined) return null
      return { id, version: newest, state: 'active', zip: join(folder, id, `${newest}.zip`) }
    },
    findByClass: async () => null,
    download: (pack, into) => copyFile(pack.zip, into),
    async [Symbol.asyncDispose]() {},
  }
}

function compare(one: string, other: string): number {
  const [numbers, others] = [one.split('.').map(Number), other.split('.').map(Number)]
  const differing = numbers.findIndex((number, index) => number !== others[index])
  return differing === -1 ? 0 : (numbers[differing] ?? 0) - (others[differing] ?? 0)
}

function openAddress(address: string, { network, origins }: OutboundRules): OpenedRegistry {
  const { host, origin } = new URL(address)
  const name = `the registry ${host}`
  const fetcher = openBuildFetcher({ network, origins: [...origins, origin] })
  const common = { allowedHosts: null, check: mustStayEncrypted }

  /** null: it is unknown there. */
  async function ask(path: string): Promise<Readonly<Record<string, unknown>> | null> {
    const limits = { headTimeMs: ANSWER_MS, bodyTimeMs: ANSWER_MS, maxBytes: MAX_ANSWER_BYTES }
    const { status, body } = await fetcher.fetch(`${address}${path}`, { ...common, ...limits }).catch(tell)
    if (status === 404) return null
    if (status !== 200) throw new Error(`${name} answered ${status}`)
    const told = parse(body)
    if (told === null) throw new Error(`${name} answered with what is no JSON object`)
    return told
  }

  const tell = (error: unknown): never => {
    if (!(error instanceof ExchangeError || error instanceof BlockedAddressError)) throw error
    const remedy = error instanceof BlockedAddressError ? '; the operator may list its origin' : ''
    throw new Error(`${name} cannot be reached: ${error.message}${remedy}`, { cause: error })
  }

  async function find(id: string, version: string | null): Promise<RegistryPack | null> {
    if (!ID.test(id)) return null
    const told = await ask(`/nodes/${encodeURIComponent(id)}/install${version === null ? '' : `?version=${version}`}`)
    const { version: has, downloadUrl: zip, status } = told ?? {}
    if (typeof has !== 'string' || !VERSION.test(has) || (version !== null && has !== version)) return null
    const state = STATES[String(status)] ?? 'active'
    return typeof zip === 'string' && URL.canParse(zip) ? { id, version: has, state, zip } : null
  }

  return {
    name,
    find,
    async findByClass(classType) {
      const told = await ask(`/comfy-nodes/${encodeURIComponent(classType)}/node`)
      return typeof told?.['id'] === 'string' ? find(told['id'], null) : null
    },
    async download({ zip }, into, signal) {
      const limits = { headTimeMs: ANSWER_MS, bodyTimeMs: MAX_ZIP_MS, maxBytes: MAX_ZIP_BYTES, mayStream: () => true }
      const { status, body } = await fetcher.fetch(zip, { ...common, ...limits, signal }).catch(tell)
      if (status !== 200) {
        if (!Buffer.isBuffer(body)) body.destroy()
        throw new Error(`${new URL(zip).host}, where ${name} has it, answered ${status}`)
      }
      await pipeline(Buffer.isBuffer(body) ? [body] : body, createWriteStream(into), { signal }).catch(tell)
    },
    [Symbol.asyncDispose]: () => fetcher[Symbol.asyncDispose](),
  }
}

function parse(body: Buffer | Readable): Readonly<Record<string, unknown>> | null {
  try {
    const told: unknown = JSON.parse(body.toString('utf8'))
    return isJsonObject(told) ? told : null
  } catch {
    return null
  }
}
