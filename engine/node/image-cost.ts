/** Where work on pixels runs: what is done in a fraction of a millisecond is not worth sending to another thread. */
import type { Cost } from './define-node.ts'

const INLINE_ELEMENTS = 16_384

export function costOf(elements: number): Cost {
  return elements <= INLINE_ELEMENTS ? 'inline' : 'compute'
}
