/** The headers that authenticate us at a provider. They are only ever sent to its API hosts. */
import { createHmac } from 'node:crypto'
import type { Clock } from '../../../../../lib/clock.ts'
import { type AuthRule, compileTemplate } from '../rules/rule-types.ts'

export type AuthHeaders = (key: string) => Readonly<Record<string, string>>

export function compileAuth(rules: readonly AuthRule[], clock: Clock): AuthHeaders {
  const variants = rules.map((rule) => ({
    fits: rule.key_matches === undefined ? null : new RegExp(rule.key_matches, 'u'),
    headers: Object.entries(rule.headers).map(([name, text]) => [name, compileTemplate(text)] as const),
    jwt: rule.jwt ?? null,
  }))
  // Nearly all calls go with the same key.
  let last: { readonly key: string; readonly headers: Readonly<Record<string, string>> } | null = null
  return function authHeaders(key) {
    if (last?.key === key) return last.headers
    const variant = variants.find(({ fits }) => fits === null || fits.test(key))
    if (variant === undefined) return {}
    const jwt = variant.jwt === null ? undefined : signToken(key, variant.jwt, clock)
    const headers = Object.fromEntries(variant.headers.map(([name, write]) => [name, write({ key, jwt })]))
    // A signed token is good for a short time only.
    last = variant.jwt === null ? { key, headers } : null
    return headers
  }
}

function signToken(key: string, rule: NonNullable<AuthRule['jwt']>, clock: Clock): string {
  const split = key.indexOf(':')
  const nowSeconds = Math.floor(clock.now().getTime() / 1000)
  const claims = {
    iss: key.slice(0, split),
    exp: nowSeconds + rule.lifetime_seconds,
    nbf: nowSeconds - rule.early_seconds,
  }
  const signed = `${toPart({ alg: 'HS256', typ: 'JWT' })}.${toPart(claims)}`
  return `${signed}.${createHmac('sha256', key.slice(split + 1))
    .update(signed)
    .digest('base64url')}`
}

function toPart(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
