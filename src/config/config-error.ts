/** A fault in the settings that stops the start. The message is one line: the setting, its source, what is wrong, and the remedy. */
export class ConfigError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ConfigError'
  }
}

const MAX_SHOWN = 80

/**
 * A value as a one-line message may show it: quoted, so that neither a line end nor an escape sequence gets through, and without
 * the credentials that an address may contain.
 */
export function quote(given: string): string {
  const text = given.replaceAll(/\/\/[^/@\s]*@/g, '//…@')
  const shown = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
  return JSON.stringify(shown)
}

/** The line and column of a JSON error, if it has them. The rest of its message may quote a secret and is not shown. */
export function positionIn(error: unknown): string {
  const position = /line \d+ column \d+/.exec((error as Error).message)?.[0]
  return position === undefined ? '' : ` (${position})`
}
