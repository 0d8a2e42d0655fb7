/** What one setting is, wherever it is listed. */
export interface Setting<Value> {
  readonly group: SettingGroup
  /** What follows the flag, `''` for a switch, null when there is no flag: other users of the machine see a command line. */
  readonly argument: string | null
  /** As a person would write it; read like any other value. */
  readonly fallback: string
  readonly read: (text: string) => Value
  readonly help: string
  readonly isSecret?: true
  /** What stands between the items of a list; a comma when absent. */
  readonly separator?: string
  /** In the config file it may be an object instead of a text. */
  readonly isBlock?: true
}

export const GROUPS = [
  'Service',
  'Network',
  'Storage',
  'Jobs',
  'Assets',
  'Accounts',
  'Deployments',
  'Engine',
  'Fleet',
  'Router',
  'Logs',
] as const
export type SettingGroup = (typeof GROUPS)[number]
