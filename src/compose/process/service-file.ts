/**
 * A small file in the data folder with the address of the service that holds the folder, for commands on the same machine. The
 * lock of the folder decides whether a service runs: the file counts only while the lock is held, and the next process that
 * takes the lock removes the file of a killed one. It holds no secret.
 */
import { readFileSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { writeFileWhole } from '../../../lib/files/write-file-whole.ts'
import type { Config } from '../../config/config.ts'
import { inspectStore } from '../storage/migrate-store.ts'

const FILE_NAME = 'service.json'
const OWNER_ONLY = 0o600
const MAX_URL_LENGTH = 2048

export interface ServiceAddress {
  /** The root of the listener, with the admin API and the health routes. */
  readonly url: string
  /** The base of the APIs for callers. */
  readonly baseUrl: string
  readonly pid: number
  /** The machine (or container) that the pid belongs to. */
  readonly host: string
}

type ServiceCondition =
  | { readonly state: 'none' }
  /** A service is starting or stopping, or another command uses the folder for a moment. */
  | { readonly state: 'held' }
  | { readonly state: 'running'; readonly address: ServiceAddress }
  | { readonly state: 'unusable'; readonly message: string }

export interface ServiceFile extends AsyncDisposable {
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

/** A client cannot connect to the wildcard address, so loopback takes its place. */
function toReachable(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}

/** Safe while a service runs: tries the lock for an instant and touches nothing else. */
export function findService({ store, dataDirectory }: Pick<Config, 'store' | 'dataDirectory'>): ServiceCondition {
  // Any number of processes may use a database server, and commands use it beside them.
  if (store.kind === 'postgres') return { state: 'none' }
  const condition = inspectStore(store)
  if (condition.state === 'unusable') return condition
  if (condition.state === 'absent' || !condition.inUse) return { state: 'none' }
  const address = readServiceAddress(dataDirectory)
  return address === null ? { state: 'held' } : { state: 'running', address }
}

/** The content of the file, even of a dead service: `findService` decides whether it counts. */
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
