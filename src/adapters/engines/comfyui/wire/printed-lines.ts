/**
 * What a server prints, in order and each line once. The socket brings only what the server flushes, and without a terminal that
 * leaves out the lines of nodes; the server's own record has everything, but only its newest few hundred pieces. So the record is
 * read while something runs and once more at the end, and both are merged by the time that each piece carries.
 */
import { BoundedSet } from '../../../../../lib/bounded-map.ts'
import type { Clock } from '../../../../../lib/clock.ts'
import { isJsonObject, type JsonValue } from '../../../../../lib/json/lossless-json.ts'
import type { Log } from '../../../../../lib/log.ts'
import { settlesWithin, sleep } from '../../../../../lib/waiting/sleep.ts'
import type { ComfyApi } from './comfy-api.ts'
import type { MessageDispatcher } from './message-dispatcher.ts'

interface PrintedLinesDeps {
  readonly api: Pick<ComfyApi, 'printed'>
  readonly clock: Clock
  /** `at`: by the server's clock, in milliseconds since 1970; null as long as its time zone is not known. */
  tell(text: string, at: number | null): void
}

const READ_EVERY_MS = 2_000
const READ_WITHIN_MS = 2_000
const READ_WITHIN_ON_STOP_MS = 200
// Pieces from the socket that wait for the next reading of the record.
const MAX_WAITING = 5_000
// Pieces that are known to be told: more than the server keeps in its record.
const MAX_REMEMBERED = 2_000
// Time zones are multiples of this, and clocks are assumed to differ by less than half of it.
const ZONE_STEP_MS = 900_000
// A record that was read within this time holds only pieces young enough to compare the clocks by.
const FRESH_MS = 300_000

/** A part of what was printed, often a whole line. */
interface Piece {
  readonly key: string
  readonly time: string
  readonly text: string
}

export class PrintedLines {
  readonly #deps: PrintedLinesDeps
  readonly #told = new BoundedSet<string>(MAX_REMEMBERED)
  #waiting: Piece[] = []
  #hasRecord = true
  /** How far the server's local time is ahead of UTC: it gives its times without a zone, so that is inferred. */
  #zoneMs: number | null = null
  #readAt = Number.NEGATIVE_INFINITY
  #underWay: Promise<void> | null = null
  #planned: Promise<void> | null = null

  constructor(deps: PrintedLinesDeps) {
    this.#deps = deps
  }

  /** Skips what was printed before: it belongs to no run of ours. */
  async begin(): Promise<void> {
    this.#remember(await this.#read().catch(() => []))
  }

  /** Takes pieces that came over the socket. */
  hear(entries: JsonValue | undefined): void {
    const pieces = readPieces(entries)
    if (this.#hasRecord) this.#waiting.push(...pieces)
    else this.#tellAll(pieces)
    if (this.#waiting.length > MAX_WAITING) void this.#shared()
  }

  /** Tells what was printed since. Never rejects and never takes long, least of all while a run is being stopped. */
  async catchUp({ isStopping }: { readonly isStopping: boolean }): Promise<void> {
    this.#planned ??= this.#plan()
    await settlesWithin(this.#planned, isStopping ? READ_WITHIN_ON_STOP_MS : READ_WITHIN_MS)
  }

  /** Catches up again and again until the signal is aborted. */
  async keepUp(signal: AbortSignal): Promise<void> {
    if (this.#deps.clock.now().getTime() - this.#readAt > FRESH_MS / 2) await this.#shared()
    while (!signal.aborted) {
      await sleep(READ_EVERY_MS, signal)
      if (!signal.aborted && this.#hasRecord) await this.#shared()
    }
  }

  /** False: the server has no record, and pieces from the socket are told as they come. */
  hasRecord(): boolean {
    return this.#hasRecord
  }

  /** The pieces of the record that were not told yet. */
  async #read(): Promise<Piece[]> {
    const entries = await this.#deps.api.printed()
    this.#hasRecord = entries !== null
    const fresh = readPieces(entries ?? undefined).filter(({ key }) => !this.#told.has(key))
    const now = this.#deps.clock.now().getTime()
    const newest = fresh.at(-1)
    const isRecent = now - this.#readAt < FRESH_MS
    if (newest !== undefined && isRecent) this.#zoneMs = zoneOf(newest.time, now) ?? this.#zoneMs
    this.#readAt = now
    return fresh
  }

  #remember(pieces: readonly Piece[]): void {
    for (const { key } of pieces) this.#told.add(key)
  }

  #tellAll(pieces: readonly Piece[]): void {
    const once = [...new Map(pieces.map((piece) => [piece.key, piece])).values()].filter(
      ({ key }) => !this.#told.has(key),
    )
    for (const { time, text } of joinEnds(once.sort(byTime))) {
      const localMs = Date.parse(`${time}Z`)
      this.#deps.tell(text, this.#zoneMs === null || Number.isNaN(localMs) ? null : localMs - this.#zoneMs)
    }
    this.#remember(once)
  }

  async #catchUp(): Promise<void> {
    const fresh = this.#hasRecord ? await this.#read().catch(() => []) : []
    const heard = this.#waiting
    this.#waiting = []
    this.#tellAll([...heard, ...fresh])
  }

  #shared(): Promise<void> {
    this.#underWay ??= this.#catchUp().finally(() => {
      this.#underWay = null
    })
    return this.#underWay
  }

  /** A reading that begins after this call: one that is under way may have been asked for before the last line was printed. */
  async #plan(): Promise<void> {
    await this.#underWay
    this.#planned = null
    await this.#shared()
  }
}

/** Python prints the end of a line as a piece of its own. */
function joinEnds(pieces: readonly Piece[]): Piece[] {
  const lines: Piece[] = []
  for (const piece of pieces) {
    const last = lines.at(-1)
    if (last !== undefined && piece.text === '\n' && !last.text.endsWith('\n'))
      lines[lines.length - 1] = { ...last, text: `${last.text}\n` }
    else lines.push(piece)
  }
  return lines
}

function byTime(one: Piece, other: Piece): number {
  return one.time < other.time ? -1 : one.time > other.time ? 1 : 0
}

function zoneOf(time: string, now: number): number | null {
  const localMs = Date.parse(`${time}Z`)
  return Number.isNaN(localMs) ? null : Math.round((localMs - now) / ZONE_STEP_MS) * ZONE_STEP_MS
}

function readPieces(entries: JsonValue | undefined): Piece[] {
  if (!Array.isArray(entries)) return []
  const seen = new Map<string, number>()
  return entries.flatMap((entry) => {
    if (!isJsonObject(entry) || typeof entry.m !== 'string') return []
    const time = typeof entry.t === 'string' ? entry.t : ''
    const plain = `${time}\0${entry.m}`
    // Two equal pieces of the same moment count as two.
    const count = seen.get(plain) ?? 0
    seen.set(plain, count + 1)
    return [{ key: count === 0 ? plain : `${plain}\0${count}`, time, text: entry.m }]
  })
}

/**
 * By which way the printed lines of a server reach its runs: from the server's own record and over the socket; of a server with
 * neither, from its process, if we started it.
 */
export interface LineSource {
  readonly printed: PrintedLines
  /** Asks the server to pass its lines on to the socket of this client. */
  subscribe(clientId: string): void
  /** Resolves when it is known by which way the lines come. */
  settled(): Promise<void>
  /** Takes a line of the process that we started. */
  hearProcess(line: string): void
  /** How long after the end of a run its last lines may still arrive. */
  lagMs(): number
}

interface LineSourceDeps {
  readonly api: Pick<ComfyApi, 'printed' | 'subscribeLogs'>
  readonly dispatcher: Pick<MessageDispatcher, 'receiveLog' | 'receiveLine' | 'attached'>
  readonly clock: Clock
  readonly log: Log
  /** Whether we started the server, so that its process can be listened to. */
  readonly isOurs: boolean
  onPrinted(text: string): void
}

// The lines of a process come through a pipe of their own and may arrive after the end of its run.
const PIPE_LAG_MS = 50

export function createLineSource({ api, dispatcher, clock, log, isOurs, onPrinted }: LineSourceDeps): LineSource {
  const printed = new PrintedLines({ api, clock, tell })
  let hearsProcess = false

  function tell(text: string, at: number | null): void {
    dispatcher.receiveLog(text, at)
    onPrinted(text)
  }
  let subscribing: Promise<void> = Promise.resolve()

  async function subscribe(clientId: string): Promise<void> {
    try {
      const isSubscribed = await api.subscribeLogs(clientId)
      // While something runs, lines that were printed in the meantime belong to it.
      if (dispatcher.attached() === 0) await printed.begin()
      hearsProcess = isOurs && !isSubscribed && !printed.hasRecord()
    } catch (error) {
      log.debug({ err: error }, 'the printed lines of an engine cannot be read')
    }
  }

  return {
    printed,
    subscribe(clientId) {
      subscribing = subscribe(clientId)
    },
    settled: () => subscribing,
    hearProcess(line) {
      if (hearsProcess) dispatcher.receiveLine(line)
    },
    lagMs: () => (hearsProcess ? PIPE_LAG_MS : 0),
  }
}
