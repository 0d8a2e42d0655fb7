/** The type of one setting in the tables of settings. */
export interface Setting<Value> {
  /** What follows the flag; `''` for a switch; null: no flag, because other users of the machine can see a command line. */
  readonly argument: string | null
  /** As a person would write it; read like any other value. */
  readonly fallback: string
  readonly read: (text: string) => Value
  readonly help: string
  /** Who would set it and when, in one sentence. A setting that nobody would set does not belong here. */
  readonly who: string
  readonly isSecret?: true
  /** The separator of list items; a comma when absent. */
  readonly separator?: string
  /** In the config file it may be an object instead of a text. */
  readonly isBlock?: true
}

export type SettingTable = Readonly<Record<string, Setting<unknown>>>

/** Something that is allowed but looks like a mistake. */
export interface ConfigWarning {
  readonly says: string
  /** What to do about it. */
  readonly remedy: string
}

export type Environment = Readonly<Record<string, string | undefined>>
