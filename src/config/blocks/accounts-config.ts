/** Who may call, in the kinds with many accounts: tiers, prices, and the tokens of another issuer. */
import { ConfigError, quote } from '../config-error.ts'
import { loadBlock, readList, readPath } from '../readers/read-choice.ts'
import type { ToAbsolute } from '../settings/setting-sources.ts'
import type { SettingName, SettingValues } from '../settings/settings.ts'

/** Settings of the kinds with many accounts. The content of tiers and prices is checked by the code that uses them. */
export interface AccountsConfig {
  readonly tiers: object | null
  /** The absolute path of the tiers' own file, which is read again when it changes; null: they have none. */
  readonly tiersFile: string | null
  readonly prices: object | null
  /** null: API keys only. */
  readonly jwt: JwtConfig | null
}

type KeySource = { readonly kind: 'url'; readonly url: string } | { readonly kind: 'file'; readonly path: string }

export interface JwtConfig {
  /** A file's path is absolute. */
  readonly keys: KeySource
  readonly issuer: string
  readonly audience: string
  readonly algorithms: readonly string[]
  readonly accountClaim: string
  readonly scopesClaim: string
  readonly clockSkewMs: number
}

// Algorithms with a shared secret are left out: whoever can verify such a token could also make one.
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
const USUAL_ALGORITHMS = 'RS256,PS256,ES256,EdDSA'
// Machines that keep time by NTP are milliseconds apart; those that do not, seconds.
const CLOCK_SKEW_MS = 30_000

interface Origins {
  readonly toAbsolute: ToAbsolute
  /** How messages name the source of a setting. */
  readonly where: (name: SettingName) => string
}

export function toAccountsConfig(values: SettingValues, origins: Origins): AccountsConfig {
  const { toAbsolute } = origins
  return {
    tiers: loadBlock('tiers', values.tiers, toAbsolute),
    tiersFile: values.tiers?.kind === 'file' ? toAbsolute('tiers', values.tiers.path) : null,
    prices: loadBlock('prices', values.prices, toAbsolute),
    jwt: toJwtConfig(values, origins),
  }
}

const LOOPBACK = /^http:\/\/(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?\//

/** An https address, a loopback one, or a file. */
function readKeySource(text: string): KeySource {
  if (!/^[a-z]+:\/\//i.test(text)) return { kind: 'file', path: readPath(text) }
  const isSafe = text.startsWith('https://') || LOOPBACK.test(text)
  if (isSafe && URL.canParse(text)) return { kind: 'url', url: text }
  throw new Error(
    'is not an https address; give for example https://login.example.com/.well-known/jwks.json, or a file',
  )
}

function readText(text: string): string {
  if (/^[\x21-\x7e]{1,2000}$/.test(text)) return text
  throw new Error(
    'is empty or has blanks or other characters that no such name has; give for example https://login.example.com',
  )
}

function readClaim(text: string): string {
  if (/^[A-Za-z0-9_.:/-]{1,200}$/.test(text)) return text
  throw new Error('is not the name of a claim; give for example sub')
}

function readAlgorithms(text: string): readonly string[] {
  const names = readList((name) => name)(text)
  const unknown = names.find((name) => !ALGORITHMS.includes(name))
  if (names.length > 0 && unknown === undefined) return names
  throw new Error(`has ${unknown === undefined ? 'no item' : quote(unknown)}; use some of ${ALGORITHMS.join(', ')}`)
}

const MEMBERS = ['keys', 'issuer', 'audience', 'algorithms', 'accountClaim', 'scopesClaim']

function toJwtConfig(values: SettingValues, { toAbsolute, where }: Origins): JwtConfig | null {
  const given = loadBlock('jwt', values.jwt, toAbsolute)
  if (given === null) return null
  const members = new Map<string, unknown>(Object.entries(given))
  const named = `jwt (from ${where('jwt')})`
  const unknown = [...members.keys()].find((name) => !MEMBERS.includes(name))
  if (unknown !== undefined) {
    throw new ConfigError(`${named} has the unknown member ${JSON.stringify(unknown)}; use ${MEMBERS.join(', ')}`)
  }
  function read<Value>(name: string, reader: (text: string) => Value, fallback?: string): Value {
    const text = members.get(name) ?? fallback
    if (typeof text !== 'string') {
      throw new ConfigError(`${named} needs ${name} as a text: tokens are checked for their keys, issuer and audience`)
    }
    try {
      return reader(text)
    } catch (error) {
      throw new ConfigError(`${named}: ${name} ${(error as Error).message}`)
    }
  }
  const keys = read('keys', readKeySource)
  return {
    keys: keys.kind === 'file' ? { kind: 'file', path: toAbsolute('jwt', keys.path) } : keys,
    issuer: read('issuer', readText),
    audience: read('audience', readText),
    algorithms: read('algorithms', readAlgorithms, USUAL_ALGORITHMS),
    accountClaim: read('accountClaim', readClaim, 'sub'),
    scopesClaim: read('scopesClaim', readClaim, 'scope'),
    clockSkewMs: CLOCK_SKEW_MS,
  }
}
