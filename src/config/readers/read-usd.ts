import { readUsd } from '../../../lib/text/usd.ts'

/** An amount of US dollars as people write it, in whole millionths. */
export function readUsdMicros(text: string): number {
  const micros = text.startsWith('-') ? null : readUsd(text)
  if (micros === null) throw new Error('is no amount of US dollars; give for example 25 or 0.50')
  return micros
}
