/**
 * How two processes of one service prove to each other that they have its secret key, before anything else is sent. The process that
 * connects signs its own id, the id of the other process, the time and a random number. The other one accepts each such signature
 * once, within a minute, and signs the same number in return. A signature for one process is not valid at another. With several keys
 * the first one signs and all are accepted, so that keys can be changed one process after the other.
 */
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'
import { BoundedMap } from '../../../../lib/bounded-map.ts'

interface LinkAuthOptions {
  /** The secret keys of the service, newest first. */
  readonly keys: readonly Uint8Array[]
  /** The id of this process. */
  readonly self: string
  /** The time that all processes share. */
  readonly now: () => Date
}

export interface Greeting {
  /** For the `authorization` header. */
  readonly text: string
  /** Whether the answer of the other side proves that it has the key. */
  isAnswered(proof: string | undefined): boolean
}

export interface LinkAuth {
  /** How often `greet` may be tried: once per key. */
  readonly keyCount: number
  greet(to: string, keyIndex: number): Greeting
  /** null: the caller does not have the secret key, or repeats an earlier signature. */
  check(text: string | undefined): { readonly from: string; readonly proof: string } | null
}

const SCHEME = 'Atelier-Link'
const TOLERANCE_MS = 60_000
// More than are dialled within the tolerance; when it is full of valid greetings, further ones are refused.
const MAX_NONCES = 50_000
const GREETING = /^Atelier-Link from=([\w.-]{1,64}) to=([\w.-]{1,64}) at=(\d{1,15}) nonce=([\w-]{22}) mac=([\w-]{43})$/

export function createLinkAuth({ keys, self, now }: LinkAuthOptions): LinkAuth {
  const derived = keys.map((key) => Buffer.from(hkdfSync('sha256', key, '', 'atelier live links', 32)))
  const seen = new BoundedMap<string, number>(MAX_NONCES)

  function isFresh(nonce: string, nowMs: number): boolean {
    if (seen.has(nonce)) return false
    // Forgetting one that is still valid would let it be repeated.
    const [oldestMs] = seen.values()
    if (seen.size >= MAX_NONCES && oldestMs !== undefined && nowMs - oldestMs < 2 * TOLERANCE_MS) return false
    seen.set(nonce, nowMs)
    return true
  }

  return {
    keyCount: derived.length,
    greet(to, keyIndex) {
      const key = derived[keyIndex]
      const nonce = randomBytes(16).toString('base64url')
      const said = `from=${self} to=${to} at=${now().getTime()} nonce=${nonce}`
      return {
        text: `${SCHEME} ${said} mac=${sign(key, `greeting ${said}`)}`,
        isAnswered: (proof) => proof !== undefined && isEqual(proof, sign(key, `answer ${said}`)),
      }
    },
    check(text) {
      const match = text === undefined || text.length > 400 ? null : GREETING.exec(text)
      if (match === null) return null
      const [, from, to, at, nonce, mac] = match
      const said = `from=${from} to=${to} at=${at} nonce=${nonce}`
      const key = derived.find((each) => isEqual(mac, sign(each, `greeting ${said}`)))
      const nowMs = now().getTime()
      if (key === undefined || to !== self || Math.abs(nowMs - Number(at)) > TOLERANCE_MS) return null
      return isFresh(nonce, nowMs) ? { from, proof: sign(key, `answer ${said}`) } : null
    },
  }
}

function sign(key: Uint8Array, text: string): string {
  return createHmac('sha256', key).update(text).digest('base64url')
}

function isEqual(left: string, right: string): boolean {
  const [one, other] = [Buffer.from(left), Buffer.from(right)]
  return one.byteLength === other.byteLength && timingSafeEqual(one, other)
}
