/** Changes single values of a configuration that no setting has: constants of the program that a test cannot wait for. */
import type { Config } from '../../../src/config/config.ts'

export type ConfigPatch = { readonly [Block in keyof Config]?: Partial<NonNullable<Config[Block]>> }

export function patchConfig(config: Config, patch: ConfigPatch = {}): Config {
  const blocks = Object.entries(patch).map(([name, values]) => [
    name,
    { ...(config[name as keyof Config] as object), ...(values as object) },
  ])
  return { ...config, ...Object.fromEntries(blocks) }
}
