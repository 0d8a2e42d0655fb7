/**
 * A client that behaves as a good one does: a request without an answer, or with one that asks for patience, is sent again with the
 * same idempotency key to any node. So in the end everything that it wants is acknowledged, once.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { SeededRandom } from '../../support/seeded-random.ts'
import type { FlawKind, Journal, Told } from './told.ts'

export interface LoadAccount {
  readonly id: string
  readonly key: string
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Uint8Array
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into answers freely
  readonly json: any
}

type Init = RequestInit | (() => RequestInit)

export const TERMINAL: ReadonlySet<string> = new Set(['succeeded', 'failed', 'canceled', 'expired'])
// Longer than anything takes on a node that is well; whoever waits for one that is not asks another.
const REQUEST_MS = 20_000
const GIVE_UP_MS = 420_000
const RETRY_MS = 150
const MAX_RETRY_MS = 2000
/** Patience is asked for; the documents say so for each of these. */
const RETRIED: ReadonlySet<number> = new Set([429, 500, 502, 503, 504])

/** The service never gave an answer that a client can work with. */
export class NeverAnswered extends Error {}

export class Client {
  readonly account: LoadAccount
  readonly #fronts: readonly string[]
  readonly #journal: Journal
  readonly #random: SeededRandom

  constructor(account: LoadAccount, parts: { fronts: readonly string[]; journal: Journal; random: SeededRandom }) {
    this.account = account
    this.#fronts = parts.fronts
    this.#journal = parts.journal
    this.#random = parts.random
  }

  /** Any of the nodes. */
  front(): string {
    return this.#random.pick(this.#fronts)
  }

  credentials(): Record<string, string> {
    // The three APIs each know one of the two.
    return { authorization: `Bearer ${this.account.key}`, 'x-api-key': this.account.key }
  }

  tell(told: Told): void {
    this.#journal.tell(told)
  }

  flaw(kind: FlawKind, text: string, id: string | null = null): void {
    this.tell({ what: 'flaw', kind, text, id })
  }

  /** The first answer that is final, from whichever node. */
  async ask(path: string, init: Init = {}, isFinal: (answer: Answer) => boolean = isFinalAnswer): Promise<Answer> {
    const giveUpAt = performance.now() + GIVE_UP_MS
    let last: Answer | null = null
    for (let tries = 0; ; tries += 1) {
      const answer = await this.askOnce(path, typeof init === 'function' ? init() : init)
      if (answer !== null) {
        if (isFinal(answer)) return answer
        last = answer
        this.tell({ what: 'refused', word: toWord(path, answer) })
      }
      if (performance.now() > giveUpAt)
        throw new NeverAnswered(`${path} was never answered, at last ${last?.status} ${JSON.stringify(last?.json)}`)
      await pause(Math.min(RETRY_MS * 2 ** Math.min(tries, 5), MAX_RETRY_MS) * (0.5 + Math.random()))
    }
  }

  /** null: no answer. */
  async askOnce(path: string, init: RequestInit = {}): Promise<Answer | null> {
    const headers = { ...this.credentials(), ...(init.headers as Record<string, string>) }
    try {
      const response = await fetch(this.front() + path, { ...init, headers, signal: AbortSignal.timeout(REQUEST_MS) })
      const bytes = new Uint8Array(await response.arrayBuffer())
      const isJson = response.headers.get('content-type')?.includes('json') === true
      const json = isJson ? JSON.parse(Buffer.from(bytes).toString()) : null
      if (response.status === 503 && response.headers.get('retry-after') === null)
        this.flaw('contract', `${path} answers 503 without Retry-After: ${Buffer.from(bytes)}`)
      // A disk that is full is told; anything else that is answered so is a defect.
      if (response.status === 500 && !/full/i.test(JSON.stringify(json)))
        this.flaw('contract', `${path} answers 500: ${Buffer.from(bytes)}`)
      return { status: response.status, headers: response.headers, bytes, json }
    } catch {
      return null
    }
  }
}

function isFinalAnswer(answer: Answer): boolean {
  return !RETRIED.has(answer.status) && !isUnderWay(answer)
}

/** The first try with this key still runs, here or on another node: its result is there a moment later. */
export function isUnderWay({ status, json }: Answer): boolean {
  return status === 409 && /running|progress|under way|concurrency_limit/i.test(JSON.stringify(json))
}

export function toWord(path: string, { status, json }: Answer): string {
  const place = path.replaceAll(/[0-9a-f-]{36}/g, '{id}').split('?')[0]
  const reason = json?.error?.code ?? json?.error_type ?? json?.error?.type ?? json?.code ?? ''
  return `${place} ${status} ${reason}`.trim()
}
