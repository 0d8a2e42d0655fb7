/** Files by address, from the real fetcher to real stored bytes. Names lead to this machine, and time passes by hand. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Ticker } from '../../../lib/clock.ts'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { newUuidV4 } from '../../../lib/ids.ts'
import { silentLog } from '../../../lib/log.ts'
import { isPublicAddress, type Network } from '../../../lib/outbound/network.ts'
import { openFsBlobs } from '../../../src/adapters/blobs/fs/fs-blobs.ts'
import { type InputUrlPolicy, openFetchInput } from '../../../src/adapters/input-urls/http-fetch-input.ts'
import { openSqliteStore } from '../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { createUploadPolicy } from '../../../src/domain/assets/create/upload-policy.ts'
import {
  createTakeGivenFiles,
  type FetchInput,
  type GivenFile,
  GivenFileError,
} from '../../../src/domain/assets/given-files.ts'
import { createStorageQuota } from '../../../src/domain/assets/storage-quota.ts'
import { createManualTicker } from '../../support/manual-ticker.ts'

export interface InputRigOptions {
  readonly policy?: Partial<InputUrlPolicy>
  readonly network?: Partial<Network>
  readonly headers?: Readonly<Record<string, Readonly<Record<string, string>>>>
  /** Ports that need not be listed, besides that of https. */
  readonly ports?: readonly number[]
  readonly ownHosts?: readonly string[]
  readonly ownPorts?: readonly number[]
  readonly storageLimit?: number
  /** In place of the real one. */
  readonly fetchInput?: FetchInput
}

export const ACCOUNT = 'local'

/** The fetcher alone. */
export function openFetchRig(options: InputRigOptions = {}) {
  const ticker = createManualTicker()
  let bodies = 0
  const every: Ticker['every'] = (intervalMs, run) => {
    const end = ticker.every(intervalMs, run)
    bodies++
    return () => {
      end()
      bodies--
    }
  }
  const fetcher = openFetchInput({
    policy: { isPublic: true, hosts: [], origins: [], ...options.policy },
    own: {
      hosts: options.ownHosts ?? [],
      isHere: (address) => options.ownPorts !== undefined && address === '127.0.0.1',
      isPort: (port) => options.ownPorts?.includes(port) === true,
    },
    headers: new Map(Object.entries(options.headers ?? {})),
    network: {
      allowsPlainHttp: false,
      mayConnect: isPublicAddress,
      resolve: async () => [{ address: '127.0.0.1', family: 4 }],
      ...options.network,
    },
    ticker: { ...ticker, every },
    version: 'test',
    ports: [443, ...(options.ports ?? [])],
  })
  return {
    ...fetcher,
    ticker,
    /** How many answers have begun and not ended. */
    bodies: () => bodies,
    /** `taken`, or what was said instead. */
    async take(url: string): Promise<string> {
      try {
        await using file = await fetcher.fetchInput(url, { maxBytes: 10 ** 6, signal: new AbortController().signal })
        for await (const chunk of file.body) assert.ok(chunk.length > 0)
        return 'taken'
      } catch (error) {
        if (!(error instanceof GivenFileError)) throw error
        return `${error.fault}: ${error.message}`
      }
    },
  }
}

export async function openInputRig(options: InputRigOptions = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'atelier-inputs-'))
  const store = await openSqliteStore({ directory })
  const blobs = await openFsBlobs({ directory: join(directory, 'blobs'), blake3: await openBlake3(), log: silentLog })
  const clock = { now: () => new Date() }
  await store.accounts.put({ id: ACCOUNT, maxRunning: 1, maxQueued: 10 })
  const fetcher = openFetchRig(options)
  const { ticker } = fetcher
  const { fetchInput = fetcher.fetchInput } = options
  const shared = { assets: store.assets, blobs, clock, newId: newUuidV4, retentionMs: null }
  const limitOf = () => options.storageLimit ?? null
  const quota = createStorageQuota({ ...shared, uploads: { openBytes: async () => 0 }, limitOf })
  const uploads = createUploadPolicy({ ...shared, quota, maxBytes: 10 ** 10 })
  const takeGivenFiles = createTakeGivenFiles({ ...shared, uploads, quota, fetchInput, ticker })
  return {
    ...{ ticker, store, blobs, clock, takeGivenFiles },
    bodies: fetcher.bodies,
    /** What became of one file. */
    async take(url: string, file: Partial<GivenFile> = {}, signal?: AbortSignal) {
      const wanted = { kind: 'image' as const, maxBytes: null, maxPixels: null, ...file, url }
      const [outcome] = await takeGivenFiles(ACCOUNT, [wanted], { signal })
      return outcome instanceof GivenFileError ? `${outcome.fault}: ${outcome.message}` : outcome
    },
    /** Hashes of all stored bytes. */
    async stored(): Promise<string[]> {
      const hashes: string[] = []
      for await (const portion of blobs.list()) hashes.push(...portion)
      return hashes
    },
    async [Symbol.asyncDispose]() {
      await fetcher[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

const HEAD = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')

/** The beginning of a PNG that says it is so large. */
export function pngHead(width: number, height: number): Buffer {
  const size = Buffer.alloc(8)
  size.writeUInt32BE(width, 0)
  size.writeUInt32BE(height, 4)
  return Buffer.concat([HEAD, size, Buffer.alloc(1000)])
}
