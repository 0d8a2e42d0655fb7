/** Commands that ask a server and say what it answered: what they are given, what they say, and how a table of them is registered. */
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Command } from 'commander'
import { type JsonValue, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import { CommandError, EXIT, type Finish, printLine, type Terminal, toPrintable } from '../terminal.ts'
import type { RunClient } from './client.ts'
import { addServerFlags, askServer } from './server-flags.ts'

export type Options = Readonly<Record<string, unknown>>

/** Lines for people, or with `--json` the answer; answers in a list are printed one on a line. */
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
  /** Flags that may be given several times: all of their values count. */
  readonly lists?: readonly (readonly [flag: string, help: string])[]
  /** A line that can be typed as it is. */
  readonly example?: string
  readonly ask: Ask
}

export function addServerCommands(
  parent: Command,
  commands: readonly ServerCommand[],
  { terminal, finish }: { readonly terminal: Terminal; readonly finish: Finish },
): void {
  for (const { usage: form, description, flags = [], lists = [], example, ask } of commands) {
    const command = parent.command(form).description(description)
    for (const [flag, help] of flags) command.option(flag, help)
    for (const [flag, help] of lists) command.option(flag, help, collect)
    command.option('--json', 'print the answer of the server as JSON')
    if (example !== undefined) command.addHelpText('after', `\nExample:\n  ${example}`)
    addServerFlags(command).action(async (...given: unknown[]) => {
      const args = command.args
      const options = given.at(-2) as Options
      finish(await sayAnswer(ask, { args, options, terminal }))
    })
  }
}

const collect = (item: string, before: string[] | undefined) => [...(before ?? []), item]

interface Asked {
  readonly args: readonly string[]
  readonly options: Options
  readonly terminal: Terminal
}

/** Asks the server that the flags name, and prints what it said; the answer is the exit code. */
export function sayAnswer(ask: Ask, { args, options, terminal }: Asked): Promise<number> {
  return askServer(options, terminal, async (client) =>
    printSaid(await ask(client, args, options, terminal), options, terminal),
  )
}

/** Returns the exit code. */
export function printSaid({ answer, lines, exitCode = EXIT.ok }: Said, { json }: Options, terminal: Terminal): number {
  const answers = (Array.isArray(answer) ? answer : [answer]) as JsonValue[]
  const texts = json === true ? answers.map(stringifyLosslessJson) : lines.map(toPrintable)
  for (const text of texts) printLine(terminal.stdout, text)
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
