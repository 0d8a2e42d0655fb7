/** mulberry32: small, seeded, replayable. A failing run prints its seed. */
export interface SeededRandom {
  /** 0 <= value < 1 */
  next(): number
  /** min <= value < max */
  between(min: number, max: number): number
  pick<Item>(items: readonly Item[]): Item
}

export function seededRandom(seed: number): SeededRandom {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    between: (min, max) => min + Math.floor(next() * (max - min)),
    pick: (items) => items[Math.floor(next() * items.length)],
  }
}
