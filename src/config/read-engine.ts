/** Readers for what names an engine: the address of a server, or the command that starts one. */

/** Commands hold commas and blanks, but no line breaks. */
export const COMMAND_SEPARATOR = '\n'

const MAX_COMMANDS = 64

/** A base address without a trailing slash. Credentials are refused: an address is shown in logs and answers. */
export function readEngineUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:'
  if (url === null || !isHttp || url.search !== '' || url.hash !== '') {
    throw new Error(
      `has the item ${JSON.stringify(text)}, which is no http(s) address; give for example http://gpu1:8188`,
    )
  }
  if (url.username !== '' || url.password !== '') {
    throw new Error('has an item with a user name or password; give the address alone, and protect it by the network')
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

export interface LaunchCommand {
  /** As it was written. */
  readonly text: string
  readonly program: string
  readonly args: readonly string[]
}

export function readCommands(text: string): readonly LaunchCommand[] {
  const lines = text
    .split(COMMAND_SEPARATOR)
    .map((line) => line.trim())
    .filter((line) => line !== '')
  if (lines.length > MAX_COMMANDS) throw new Error(`has ${lines.length} commands; at most ${MAX_COMMANDS} are allowed`)
  return lines.map(readCommand)
}

function readCommand(text: string): LaunchCommand {
  const [program, ...args] = splitWords(text)
  if (program === undefined) throw new Error('has an empty command; give for example python main.py --port {port}')
  if (!args.some((word) => word.includes('{port}'))) {
    throw new Error('has a command without {port}; give for example python main.py --port {port}')
  }
  return { text, program, args }
}

// A word is a row of plain characters and quoted parts; inside quotes blanks belong to it.
const WORD = /(?:[^\s"']|"[^"]*"|'[^']*')+/g
const QUOTED = /"([^"]*)"|'([^']*)'/g

function splitWords(text: string): string[] {
  if (/["']/.test(text.replaceAll(QUOTED, ''))) {
    throw new Error('has a command with a quote that is not closed; close it, or leave it out')
  }
  const words = text.match(WORD) ?? []
  return words.map((word) => word.replaceAll(QUOTED, (_, double?: string, single?: string) => double ?? single ?? ''))
}
