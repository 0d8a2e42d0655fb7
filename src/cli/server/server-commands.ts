/** Commands that ask a server and say what it answered: what they are given, what they say, and how a table of them is registered. */
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Command } from 'commander'
import { type JsonValue, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import { CommandError, EXIT, type Finish, printLine, type Terminal, toPrintable } from '../terminal.ts'
import type { RunClient } from './client.ts'
import { addServerFlags, askServer } from './server-flags.ts'

export type Options = Readonly<Record<string, unknown>>

/** Lines for people, or with `--json` the answer. */
export interface Said {
  readonly answer: unknown
  readonly lines: readonly string[]
  /** Left out: success. */
  readonly exitCode?: number
}

export type Ask = (client: RunClient, args: readonly string[], options: Options, terminal: Terminal) => Promise<Said>

export interface ServerCommand {
  /** With its arguments, as the help shows them. */
  readonly usage: string
  readonly description: string
  readonly flags?: readonly (readonly [flag: string, help: string])[]
  /** A line that can be typed as it is. */
  readonly example?: string
  readonly ask: Ask
}

export function addServerCommands(
  parent: Command,
  commands: readonly ServerCommand[],
  { terminal, finish }: { readonly terminal: Terminal; readonly finish: Finish },
): void {
  for (const { usage: form, description, flags = [], example, ask } of commands) {
    const command = parent.command(form).description(description)
    for (const [flag, help] of flags) command.option(flag, help)
    command.option('--json', 'print the answer of the server as JSON')
    if (example !== undefined) command.addHelpText('after', `\nExample:\n  ${example}`)
    addServerFlags(command).action(async (...given: unknown[]) => {
      const args = command.args
      const options = given.at(-2) as Options
      finish(await askServer(options, terminal, (client) => run(ask, client, args, options, terminal)))
    })
  }
}

async function run(
  ask: Ask,
  client: RunClient,
  args: readonly string[],
  options: Options,
  terminal: Terminal,
): Promise<number> {
  const { answer, lines, exitCode = EXIT.ok } = await ask(client, args, options, terminal)
  if (options['json'] === true) printLine(terminal.stdout, stringifyLosslessJson(answer as JsonValue))
  else for (const line of lines) printLine(terminal.stdout, toPrintable(line))
  return exitCode
}

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
