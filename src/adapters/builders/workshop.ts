/**
 * What every step of a build uses: the folders of the builder, programs that are started without the service's secrets and never
 * outlive it, and the build's log, which no credential reaches.
 */
import { join } from 'node:path'
import { type KeptEnd, type SystemUser, startKept } from '../../../lib/processes/kept-process.ts'
import { BuilderLacks, BuildFailure, type BuildPhase } from '../../domain/environments/builder.ts'

export interface Workshop {
  /** The builder's own folder, a real path. */
  readonly root: string
  /** Allowed variables only. */
  readonly env: NodeJS.ProcessEnv
  /** Who runs what the authors of packs and packages wrote; null: this process's own user. */
  readonly user: SystemUser | null
}

export interface Step {
  readonly shop: Workshop
  /** For files of this build that are gone with it. */
  readonly scratch: string
  readonly signal: AbortSignal
  /** A line of the log. */
  say(line: string): void
  /** Hands a folder with everything in it to the user who runs what others wrote. */
  give(folder: string): Promise<void>
}

interface RunOptions {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  readonly maxMs?: number
  /** Its lines do not reach the log. */
  readonly isQuiet?: boolean
  /** Runs as this process's own user: nothing that others wrote is executed. */
  readonly isTrusted?: boolean
}

interface Ran extends KeptEnd {
  readonly stdout: string
  /** The last lines of both streams. */
  readonly lastLines: readonly string[]
}

const DEFAULT_MS = 3_600_000
const LAST_LINES = 40
const MAX_STDOUT = 1_000_000

/** Resolves also for a program that fails. Throws the reason of the step's signal. */
export async function run(
  { shop, scratch, signal, say }: Step,
  words: readonly string[],
  options: RunOptions,
): Promise<Ran> {
  const { cwd, env = {}, maxMs = DEFAULT_MS, isQuiet = false, isTrusted = false } = options
  signal.throwIfAborted()
  let stdout = ''
  const lastLines: string[] = []
  const program = startKept(words, {
    cwd,
    env: { ...shop.env, HOME: homeOf(shop), TMPDIR: scratch, ...env },
    user: isTrusted ? null : shop.user,
    onLine(line, stream) {
      if (stream === 'stdout' && stdout.length < MAX_STDOUT) stdout += `${line}\n`
      if (lastLines.push(line) > LAST_LINES) lastLines.shift()
      if (!isQuiet) say(line)
    },
  })
  const stopping = AbortSignal.any([signal, AbortSignal.timeout(maxMs)])
  const stop = () => void program.stop()
  stopping.addEventListener('abort', stop, { once: true })
  if (stopping.aborted) stop()
  try {
    const end = await program.ended
    signal.throwIfAborted()
    const isLate = stopping.aborted && end.code === null
    return {
      ...end,
      ...(isLate ? { problem: `it took longer than ${maxMs / 60_000} minutes` } : {}),
      stdout,
      lastLines,
    }
  } finally {
    stopping.removeEventListener('abort', stop)
    await program.stop()
  }
}

/** Programs write what they like into their user's home: this one is the builder's own. */
export function homeOf({ root }: Pick<Workshop, 'root'>): string {
  return join(root, 'home')
}

const FULL_DISK = /No space left on device|Disk quota exceeded|os error (?:28|122)\b/

/** What to tell about a program that failed; a full disk is told as such. */
export function failureOf(
  phase: BuildPhase,
  what: string,
  ran: Pick<Ran, 'code' | 'problem' | 'lastLines'>,
): BuildFailure {
  if (ran.lastLines.some((line) => FULL_DISK.test(line))) return fullDisk(phase)
  const how = ran.problem ?? `it ended with code ${ran.code}`
  return new BuildFailure(phase, `${what}: ${how}${quoteLines(ran.lastLines)}`)
}

const QUOTED_LINES = 12

export function quoteLines(lines: readonly string[]): string {
  const told = lines.filter((line) => line.trim() !== '').slice(-QUOTED_LINES)
  return told.length === 0 ? '' : `\n${told.map((line) => `  ${line}`).join('\n')}`
}

export function fullDisk(phase: BuildPhase): BuilderLacks {
  return new BuilderLacks(
    phase,
    'the disk of the builder is full; delete releases that are no longer needed or give the builder more room, then cut the release again',
  )
}

/** Ends a build before the disk has nothing left for others. */
export class DiskFull extends Error {}

export function isFullDisk(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return error instanceof DiskFull || code === 'ENOSPC' || code === 'EDQUOT'
}

/** A full disk, where the system says so; other errors stay what they are. */
export function toFailure(phase: BuildPhase, error: unknown): unknown {
  return isFullDisk(error) ? fullDisk(phase) : error
}

const CREDENTIALS = /([a-z][a-z0-9+.-]*:\/\/)[^\s/@'"]+@/gi
const SECRET_QUERY = /([?&](?:[\w-]*(?:token|key|secret|signature|password|credential|sig)[\w-]*)=)[^\s&'"]+/gi
const AUTHORIZATION = /\b(bearer|basic)\s+[\w.~+/=-]{8,}/gi
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out.
const CONTROL = /\u001b\[[0-9;]*[A-Za-z]|[\u0000-\u0008\u000b-\u001f\u007f]/g
const MAX_LINE = 4_000
const MIN_SECRET = 4

/** Takes credentials out of a text: those that the builder was given, and whatever looks like one in an address or a header. */
export function createRedactor(secrets: readonly string[]): (text: string) => string {
  const known = secrets.filter((secret) => secret.length >= MIN_SECRET)
  return (text) => {
    let clean = text.slice(0, MAX_LINE).replace(CONTROL, '')
    for (const secret of known) clean = clean.replaceAll(secret, '***')
    return clean.replace(CREDENTIALS, '$1***@').replace(SECRET_QUERY, '$1***').replace(AUTHORIZATION, '$1 ***')
  }
}
