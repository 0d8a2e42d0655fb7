/** A setting that stops the start. The message is one line: which setting, where it came from, what is wrong, how to mend it. */
export class ConfigError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ConfigError'
  }
}

const MAX_SHOWN = 80

/**
 * A value as it may stand in a one-line message: quoted, so that neither a line end nor an escape sequence gets through, and
 * without the credentials that an address may carry.
 */
export function quote(given: string): string {
  const text = given.replaceAll(/\/\/[^/@\s]*@/g, '//…@')
  const shown = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
  return JSON.stringify(shown)
}

/** Where the fault is, if that was said; nothing else of the message, because it may quote a secret of the file. */
export function placeIn(error: unknown): string {
  const place = /line \d+ column \d+/.exec((error as Error).message)?.[0]
  return place === undefined ? '' : ` (${place})`
}
