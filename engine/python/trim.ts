/** Python's one-sided `strip`. Its set of spaces is known to `pythonStrip`; a sentinel protects the side that stays. */
import { pythonStrip } from '../../lib/python/text.ts'

const SENTINEL = '|'

export function pyStripLeft(text: string): string {
  return pythonStrip(text + SENTINEL).slice(0, -1)
}

export function pyStripRight(text: string): string {
  return pythonStrip(SENTINEL + text).slice(1)
}
