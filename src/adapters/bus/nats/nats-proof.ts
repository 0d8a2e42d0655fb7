/**
 * What processes of one service say to each other through NATS servers, which others may use as well, carries a proof: who said it,
 * to which subject, when, and a number that rises, signed under a key that comes from the service's secret key. Whatever has no
 * proof, an old one or one that was seen before is passed over. Several keys: all of them sign and all are accepted, so that keys
 * can be changed one process after the other. Nothing is encrypted here; `tls://` does that.
 */
import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { BoundedMap } from '../../../../lib/bounded-map.ts'

export interface ProofOptions {
  /** The secret keys of the service, newest first. */
  readonly keys: readonly Uint8Array[]
  /** The id of this process, which is never that of an earlier one. */
  readonly nodeId: string
  /** The time that all processes share. */
  readonly now: () => Date
}

interface Proven {
  readonly from: string
  readonly data: Uint8Array
}

export interface MessageProof {
  /** How much a message grows at most. */
  readonly maxHeadBytes: number
  seal(subject: string, data: Uint8Array): Uint8Array
  /** null: nobody of this service said it, or not now. */
  open(subject: string, message: Uint8Array): Proven | null
}

const TOLERANCE_MS = 60_000
const MAX_KEYS = 8
// Of one sender and subject the highest number is remembered.
const MAX_SENDERS = 20_000
const MAC_LENGTH = 43
const MAX_ABOUT_LENGTH = 100
const LINE_END = 10
const HEAD = /^(([\w.-]{1,64}) (\d{1,15}) (\d{1,15})) ([\w,-]+)$/

export function createMessageProof({ keys, nodeId, now }: ProofOptions): MessageProof {
  const derived = keys.slice(0, MAX_KEYS).map((key) => Buffer.from(hkdfSync('sha256', key, '', 'atelier nats', 32)))
  const heardUntil = new BoundedMap<string, number>(MAX_SENDERS)
  let said = 0

  return {
    maxHeadBytes: MAX_ABOUT_LENGTH + derived.length * (MAC_LENGTH + 1) + 1,
    seal(subject, data) {
      const about = `${nodeId} ${now().getTime()} ${++said}`
      const macs = derived.map((key) => sign(key, subject, about, data).toString('base64url'))
      return Buffer.concat([Buffer.from(`${about} ${macs.join(',')}\n`), data])
    },
    open(subject, message) {
      const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength)
      const end = bytes.indexOf(LINE_END)
      const maxLength = MAX_ABOUT_LENGTH + MAX_KEYS * (MAC_LENGTH + 1)
      const match = end < 0 || end > maxLength ? null : HEAD.exec(bytes.toString('latin1', 0, end))
      if (match === null) return null
      const [, about, from, at, number, macs] = match
      const data = bytes.subarray(end + 1)
      const said = macs.split(',').map((mac) => Buffer.from(mac, 'base64url'))
      const isOurs = derived.some((key) => {
        const right = sign(key, subject, about, data)
        return said.some((mac) => mac.byteLength === right.byteLength && timingSafeEqual(mac, right))
      })
      if (!isOurs || Math.abs(now().getTime() - Number(at)) > TOLERANCE_MS) return null
      const stream = `${subject} ${from}`
      if (Number(number) <= (heardUntil.get(stream) ?? 0)) return null
      heardUntil.set(stream, Number(number))
      return { from, data }
    },
  }
}

function sign(key: Uint8Array, subject: string, about: string, data: Uint8Array): Buffer {
  return createHmac('sha256', key).update(`${subject} ${about}\n`).update(data).digest()
}
