/** Readers for JWT settings, the domain of deployments, and hooks (programs or addresses to call). */
import path from 'node:path'
import { readPath } from './read-choice.ts'

export type KeySource =
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'file'; readonly path: string }

const LOOPBACK = /^http:\/\/(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?\//

/** An https address, a loopback one, or a file. */
export function readKeySource(text: string): KeySource {
  if (!/^[a-z]+:\/\//i.test(text)) return { kind: 'file', path: readPath(text) }
  const isSafe = text.startsWith('https://') || LOOPBACK.test(text)
  if (isSafe && URL.canParse(text)) return { kind: 'url', url: text }
  throw new Error(
    'is not an https address; give for example https://login.example.com/.well-known/jwks.json, or a file',
  )
}

const TEXT = /^[\x21-\x7e]{1,2000}$/

export function readText(text: string): string {
  if (TEXT.test(text)) return text
  throw new Error(
    'is empty or has blanks or other characters that no such name has; give for example https://login.example.com',
  )
}

const CLAIM = /^[A-Za-z0-9_.:/-]{1,200}$/

export function readClaim(text: string): string {
  if (CLAIM.test(text)) return text
  throw new Error('is not the name of a claim; give for example sub')
}

// Algorithms with a shared secret are left out: whoever can verify a token could also make one.
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']

export function readAlgorithm(text: string): string {
  if (ALGORITHMS.includes(text)) return text
  throw new Error(`has the item ${JSON.stringify(text)}; use some of ${ALGORITHMS.join(', ')}`)
}

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

export function readLabel(text: string): string {
  if (LABEL.test(text)) return text
  throw new Error('is not one part of a host name; give for example stg')
}

export function readDomain(text: string): string {
  const domain = text.toLowerCase()
  const isDomain = domain.length <= 180 && domain.split('.').every((label) => LABEL.test(label))
  if (isDomain) return domain
  throw new Error('is not a domain; give for example example.com, without "run." and without a port')
}

export type PoolHook =
  | { readonly kind: 'webhook'; readonly url: string }
  | { readonly kind: 'command'; readonly path: string }

export function readPoolHook(text: string): PoolHook {
  if (/^https?:\/\//i.test(text) && URL.canParse(text)) return { kind: 'webhook', url: text }
  if (path.isAbsolute(text) && !text.includes('\0')) return { kind: 'command', path: text }
  throw new Error('is neither an http(s) address nor the absolute path of a program; give one of them')
}
