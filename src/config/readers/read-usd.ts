/** An amount of US dollars as people write it, in whole millionths. */
const AMOUNT = /^(\d{1,9})(?:\.(\d{1,6}))?$/

export function readUsdMicros(text: string): number {
  const parts = AMOUNT.exec(text)
  if (parts === null) throw new Error('is no amount of US dollars; give for example 25 or 0.50')
  return Number(parts[1]) * 1_000_000 + Number((parts[2] ?? '').padEnd(6, '0'))
}
