/** Which key does what, for the handler and for the page that explains them. */
export interface KeyRow {
  readonly keys: string
  readonly deed: string
}

export const GO: Readonly<Record<string, string>> = {
  h: '/',
  j: '/jobs',
  r: '/run',
  a: '/gallery',
  m: '/models',
  u: '/account/usage',
  o: '/operator',
}

export const KEY_ROWS: readonly KeyRow[] = [
  { keys: '/', deed: 'search' },
  { keys: '⌘K  Ctrl K', deed: 'commands' },
  { keys: 'g then h j r a m u o', deed: 'go to Home, Jobs, Run, gAllery, Models, Usage, Operator' },
  { keys: 'j  k', deed: 'down, up' },
  { keys: 'Enter', deed: 'open' },
  { keys: 'Space', deed: 'peek' },
  { keys: 'x', deed: 'select' },
  { keys: '[  ]', deed: 'previous, next in the filter' },
  { keys: 'c', deed: 'cancel' },
  { keys: 'r', deed: 'run again' },
  { keys: 'd', deed: 'download' },
  { keys: '1 … 6', deed: 'tabs' },
  { keys: '.', deed: 'pause and resume what is live' },
  { keys: 'f', deed: 'find a node' },
  { keys: '⌘↵  Ctrl ↵', deed: 'run' },
  { keys: '?', deed: 'these keys' },
  { keys: 'Esc', deed: 'back' },
]

interface KeyPress {
  readonly key: string
  readonly ctrlKey: boolean
  readonly metaKey: boolean
  readonly altKey: boolean
}

/** `mod+k`, `j`, `Enter`; null: not ours. */
export function toKeyWord({ key, ctrlKey, metaKey, altKey }: KeyPress): string | null {
  if (altKey) return null
  if (ctrlKey || metaKey) return key === 'Enter' || key === 'k' || key === 'K' ? `mod+${key.toLowerCase()}` : null
  return key
}

/** Keys that a screen reader or a voice may send by chance: they can be switched off. */
export function isSingleLetter(word: string): boolean {
  return word.length === 1 && word !== ' '
}
