/**
 * Where the service that holds a data folder can be reached: a small file in the folder, for the commands on the same machine.
 * The lock on the folder decides whether there is such a service; the file is believed only while somebody holds the lock, and
 * whoever takes the lock removes what a killed process left. It holds no secret.
 */
import { readFileSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { writeFileWhole } from '../../lib/files/write-file-whole.ts'
import type { StoreConfig } from '../config/config.ts'
import { inspectStore } from './storage/migrate-store.ts'

const FILE_NAME = 'service.json'
const OWNER_ONLY = 0o600
const MAX_URL_LENGTH = 2048

export interface ServiceAddress {
  /** The root of the listener: there are the admin API and the health routes. */
  readonly url: string
  /** Below it: the APIs for callers. */
  readonly baseUrl: string
  readonly pid: number
  /** The machine (or container) that the pid belongs to. */
  readonly host: string
}

type ServiceCondition =
  | { readonly state: 'none' }
  /** It starts or ends, or another command has the folder for a moment. */
  | { readonly state: 'held' }
  | { readonly state: 'running'; readonly address: ServiceAddress }
  | { readonly state: 'unusable'; readonly message: string }

interface ServiceFile extends AsyncDisposable {
  announce(url: string, mountPrefix: string): Promise<void>
}

/** For the process that has just taken the lock of the folder. */
export async function openServiceFile(directory: string): Promise<ServiceFile> {
  const path = join(directory, FILE_NAME)
  await rm(path, { force: true })
  let written: string | null = null
  return {
    async announce(listensAt, mountPrefix) {
      const url = toReachable(listensAt)
      const address: ServiceAddress = { url, baseUrl: url + mountPrefix, pid: process.pid, host: hostname() }
      const text = `${JSON.stringify(address)}\n`
      await writeFileWhole(path, text, { mode: OWNER_ONLY, isDurable: false })
      written = text
    },
    async [Symbol.asyncDispose]() {
      if (written !== null && (await readFile(path, 'utf8').catch(() => null)) === written)
        await rm(path, { force: true })
    },
  }
}

/** Nobody connects to "every address of this machine". */
function toReachable(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}

/** Also beside a running service: the lock is tried for an instant, nothing else is touched. */
export function findService(store: StoreConfig): ServiceCondition {
  const condition = inspectStore(store)
  if (condition.state === 'unusable') return condition
  if (condition.state === 'absent' || !condition.inUse) return { state: 'none' }
  const address = readServiceAddress(store.directory)
  return address === null ? { state: 'held' } : { state: 'running', address }
}

/** As the file has it, whoever wrote it: `findService` says whether it counts. */
export function readServiceAddress(directory: string): ServiceAddress | null {
  try {
    const value = JSON.parse(readFileSync(join(directory, FILE_NAME), 'utf8')) as Record<string, unknown>
    const { url, baseUrl, pid, host } = value
    const isPid = Number.isSafeInteger(pid) && (pid as number) > 0
    if (!isAddress(url) || !isAddress(baseUrl) || !isPid || typeof host !== 'string') return null
    return { url, baseUrl, pid: pid as number, host }
  } catch {
    return null
  }
}

function isAddress(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_URL_LENGTH && /^http:\/\//.test(value) && URL.canParse(value)
}
