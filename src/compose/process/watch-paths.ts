/**
 * Notices that files have changed since they were last read, however they were saved: it polls them and compares their content.
 * (Notifications of the operating system follow one inode: they stop when an editor or a deployment replaces a file or folder
 * with a new one.)
 */
import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import type { Clock } from '../../../lib/clock.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'

const LOOK_EVERY_MS = 500
// Checking ten thousand files takes a while. It may take at most this share of the time.
const LOOK_SHARE = 20
// Some file systems store times to two seconds, so a younger file may change without a new time and is read again.
const YOUNG_MS = 3000
// Larger files are refused by their readers, so only their size and time are compared.
const MAX_DIGESTED_BYTES = 1024 * 1024

interface WatchOptions {
  /** Lists the files. An error counts as a state of its own, because a folder that disappears is a change too. */
  readonly list: () => Promise<readonly string[]>
  /** Called when something has changed and then stayed the same for one check. */
  readonly onChanged: () => void
  readonly clock: Clock
}

interface PathWatch extends AsyncDisposable {
  /** To be called right before everything is read. Resolves with what has changed since the last call. */
  note(): Promise<readonly string[]>
  start(): void
}

export function createWatch({ list, onChanged, clock }: WatchOptions): PathWatch {
  const known = new Map<string, Known>()
  const ending = new AbortController()
  let looping: Promise<void> = Promise.resolve()
  let noted: Look = new Map()

  async function look(): Promise<Look> {
    const seen = new Map<string, string>()
    try {
      for (const file of await list()) seen.set(file, await digestOf(file))
    } catch (error) {
      seen.set('', error instanceof Error ? error.message : String(error))
    }
    for (const file of known.keys()) if (!seen.has(file)) known.delete(file)
    return seen
  }

  async function digestOf(file: string): Promise<string> {
    try {
      const { ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true })
      const state = [ino, size, mtimeNs, ctimeNs].join()
      const before = known.get(file)
      if (before?.state === state && before.isSettled) return before.digest
      const isSettled = ctimeNs / 1_000_000n < BigInt(clock.now().getTime() - YOUNG_MS)
      const digest = size > MAX_DIGESTED_BYTES ? state : toDigest(await readFile(file))
      known.set(file, { state, digest, isSettled })
      return digest
    } catch (error) {
      return (error as NodeJS.ErrnoException).code ?? 'unreadable'
    }
  }

  async function loop(): Promise<void> {
    let before = noted
    let pauseMs = LOOK_EVERY_MS
    while (!ending.signal.aborted) {
      await sleep(pauseMs, ending.signal)
      if (ending.signal.aborted) return
      const startedAt = performance.now()
      const now = await look()
      // An editor writes a file in several steps, and a deployment writes many files: wait until nothing changes any more.
      if (differences(before, now).length === 0 && differences(noted, now).length > 0) onChanged()
      before = now
      pauseMs = Math.max(LOOK_EVERY_MS, (performance.now() - startedAt) * LOOK_SHARE)
    }
  }

  return {
    async note() {
      const before = noted
      noted = await look()
      return differences(before, noted).filter((file) => file !== '')
    },
    start() {
      looping = loop()
    },
    async [Symbol.asyncDispose]() {
      ending.abort()
      await looping
    },
  }
}

/** Digests by file; the empty name holds the error that kept the files from being listed. */
type Look = ReadonlyMap<string, string>

interface Known {
  readonly state: string
  readonly digest: string
  /** The file was old enough when it was read that a later change must change its time or size. */
  readonly isSettled: boolean
}

function toDigest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('base64')
}

function differences(one: Look, other: Look): string[] {
  const files = new Set([...one.keys(), ...other.keys()])
  return [...files].filter((file) => one.get(file) !== other.get(file))
}
