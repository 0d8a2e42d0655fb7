/** Whether a message comes from the service, as Standard Webhooks has it. Needs WebCrypto: Node 20 or newer, edge runtimes, browsers. */
import { AtelierError } from './core.ts'

export interface ReceivedWebhook {
  /** `whsec_…`: of the webhook, or of the account where it was named by a job. */
  readonly secret: string
  readonly headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>
  /** As it came, before anything parsed it. */
  readonly body: string | Uint8Array
  /** How old a message may be; default: five minutes. */
  readonly toleranceSeconds?: number
}

/** The message, once its signature and its time are right. Throws AtelierError with the code `webhook_refused` otherwise. */
export async function verifyWebhook<T = unknown>(received: ReceivedWebhook): Promise<T> {
  const { secret, headers, body, toleranceSeconds = 300 } = received
  const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((name) => read(headers, `webhook-${name}`))
  const ageSeconds = Math.abs(Date.now() / 1000 - Number(timestamp))
  if (!(ageSeconds <= toleranceSeconds)) throw refused('its time is missing, or too far from ours')
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  const signed = concat(new TextEncoder().encode(`${id}.${timestamp}.`), bytes)
  const key = await crypto.subtle.importKey(
    'raw',
    fromBase64(secret.replace(/^whsec_/, '')),
    { name: 'HMAC', hash: 'SHA-256' },
    false,
    ['verify'],
  )
  // Several while a secret is being replaced by another.
  for (const signature of signatures.split(' ')) {
    const [version, text = ''] = signature.split(',')
    if (version === 'v1' && (await crypto.subtle.verify('HMAC', key, fromBase64(text), signed)))
      return JSON.parse(new TextDecoder().decode(bytes)) as T
  }
  throw refused('no signature of it is right: is this the secret of this webhook, and the body as it came?')
}

const refused = (why: string) => new AtelierError(`the message is not believed: ${why}`, { code: 'webhook_refused' })

function read(headers: ReceivedWebhook['headers'], name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : headers[name]
  return typeof value === 'string' ? value : ''
}

function concat(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(first.length + second.length)
  whole.set(first)
  whole.set(second, first.length)
  return whole
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return new Uint8Array(0)
  }
}
