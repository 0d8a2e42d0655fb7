/** Who may call, in the kinds with many accounts: tiers, prices, and the tokens of another issuer. */
import { loadBlock } from '../readers/read-block.ts'
import type { KeySource } from '../readers/read-remote.ts'
import type { ToAbsolute } from '../settings/setting-sources.ts'
import type { SettingValues } from '../settings/settings.ts'

/** Settings of the kinds with many accounts. The content of the blocks is checked by the code that uses them. */
export interface AccountsConfig {
  readonly tiers: object | null
  /** The absolute path of the tiers' own file, which is read again when it changes; null: they have none. */
  readonly tiersFile: string | null
  readonly prices: object | null
  /** null: API keys only. */
  readonly jwt: JwtConfig | null
}

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

export function toAccountsConfig(values: SettingValues, toAbsolute: ToAbsolute): AccountsConfig {
  return {
    tiers: loadBlock(values.tiers, { name: 'tiers', toAbsolute }),
    tiersFile: values.tiers?.kind === 'file' ? toAbsolute('tiers', values.tiers.path) : null,
    prices: loadBlock(values.prices, { name: 'prices', toAbsolute }),
    jwt: toJwtConfig(values, toAbsolute),
  }
}

function toJwtConfig(values: SettingValues, toAbsolute: ToAbsolute): JwtConfig | null {
  const { jwtKeys: keys, jwtIssuer: issuer, jwtAudience: audience } = values
  if (keys === null || issuer === null || audience === null) return null
  return {
    keys: keys.kind === 'file' ? { kind: 'file', path: toAbsolute('jwtKeys', keys.path) } : keys,
    issuer,
    audience,
    algorithms: values.jwtAlgorithms,
    accountClaim: values.jwtAccountClaim,
    scopesClaim: values.jwtScopesClaim,
    clockSkewMs: values.jwtClockSkew,
  }
}
