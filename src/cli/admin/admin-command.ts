/** Runs one administrative command: connects, calls the admin API and prints the answer. */
import type { Command } from 'commander'
import { EXIT, type Finish, printLine, type Terminal, toPrintable } from '../terminal.ts'
import { type AdminClient, addAdminFlags, connect } from './connect.ts'

export type Options = Readonly<Record<string, unknown>>

interface AdminCommand<Answer extends object> {
  readonly ask: (client: AdminClient, options: Options, args: readonly (string | undefined)[]) => Promise<Answer>
  /** What a person reads; with --json the answer itself is printed. */
  readonly show: (answer: Answer) => string
  /** The exit code; left out: success. */
  readonly judge?: (answer: Answer) => number
}

export interface CommandParts {
  readonly terminal: Terminal
  readonly finish: Finish
}

export function addAdminCommand<Answer extends object>(
  command: Command,
  { ask, show, judge }: AdminCommand<Answer>,
  parts: CommandParts,
): void {
  const { terminal, finish } = parts
  addAdminFlags(command).action(async (...given: unknown[]) => {
    // Commander hands in the arguments, then the options, then the command.
    const options = given.at(-2) as Options
    const args = given.slice(0, -2) as (string | undefined)[]
    await using client = connect(options, terminal)
    const answer = await ask(client, options, args)
    printLine(terminal.stdout, options['json'] === true ? JSON.stringify(answer, null, 2) : toPrintable(show(answer)))
    finish(judge?.(answer) ?? EXIT.ok)
  })
}
