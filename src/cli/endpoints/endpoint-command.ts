/** What the commands about endpoints have in common: what they are given, and what they say. */
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import type { RunClient } from '../server/client.ts'
import { CommandError, EXIT, type Terminal } from '../terminal.ts'

export type Options = Readonly<Record<string, unknown>>

/** Lines for people, or with `--json` the answer. */
export interface Said {
  readonly answer: unknown
  readonly lines: readonly string[]
}

export type Ask = (client: RunClient, args: readonly string[], options: Options, terminal: Terminal) => Promise<Said>

export function textOf(options: Options, name: string): string | null {
  return typeof options[name] === 'string' ? options[name] : null
}

/** Writes the text to `--out` and says where; without it, the text is what is said. */
export function toFile(text: string, options: Options, { cwd }: Terminal): string[] {
  const out = textOf(options, 'out')
  if (out === null) return [text.trimEnd()]
  const file = path.resolve(cwd, out)
  try {
    writeFileSync(file, text)
  } catch (error) {
    throw new CommandError(`cannot write ${out}: ${(error as Error).message}`, EXIT.failed)
  }
  return [file]
}
