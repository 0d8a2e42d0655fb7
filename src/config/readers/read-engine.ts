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

/** Commands that start a server and can be told its port. */
export function readCommands(text: string): readonly string[] {
  const commands = text
    .split(COMMAND_SEPARATOR)
    .map((line) => line.trim())
    .filter((line) => line !== '')
  if (commands.length > MAX_COMMANDS) {
    throw new Error(`has ${commands.length} commands; at most ${MAX_COMMANDS} are allowed`)
  }
  if (commands.some((command) => !command.includes('{port}'))) {
    throw new Error('has a command without {port}; give for example python main.py --port {port}')
  }
  return commands
}
