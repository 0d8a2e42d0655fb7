/** What a person chose for this browser: theme, density, time zone, shortcuts. Plain cookies, so that the server can paint the theme. */
import { effect, signal } from '@preact/signals'

export type Theme = 'auto' | 'light' | 'dark'
export type Density = 'roomy' | 'dense'

const YEAR_SECONDS = 365 * 24 * 60 * 60

function readCookie(name: string): string | null {
  const found = document.cookie.split('; ').find((pair) => pair.startsWith(`atelier-${name}=`))
  return found === undefined ? null : decodeURIComponent(found.slice(found.indexOf('=') + 1))
}

function writeCookie(name: string, value: string): void {
  // biome-ignore lint/suspicious/noDocumentCookie: the newer way exists only over https and on loopback.
  document.cookie = `atelier-${name}=${encodeURIComponent(value)}; Path=/; Max-Age=${YEAR_SECONDS}; SameSite=Strict`
}

/** A choice among words; anything else in the cookie counts as the first. */
function choice<Word extends string>(name: string, words: readonly [Word, ...Word[]]) {
  const stored = readCookie(name)
  const chosen = signal<Word>(words.find((word) => word === stored) ?? words[0])
  let isFirst = true
  effect(() => {
    const { value } = chosen
    if (!isFirst) writeCookie(name, value)
    isFirst = false
  })
  return chosen
}

export const theme = choice<Theme>('theme', ['auto', 'light', 'dark'])
export const density = choice<Density>('density', ['roomy', 'dense'])
/** Shortcuts of a single letter; those with a modifier always work. */
export const shortcuts = choice<'on' | 'off'>('shortcuts', ['on', 'off'])
/** `local`: the browser's own. */
export const zone = choice<'local' | 'UTC'>('zone', ['local', 'UTC'])

// Asked once: the answer takes the browser longer than all the rest of a row.
const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone

export function zoneName(): string {
  return zone.value === 'UTC' ? 'UTC' : ownZone
}

export function applyPreferences(): void {
  effect(() => {
    document.documentElement.dataset['theme'] = theme.value
    document.documentElement.dataset['density'] = density.value
  })
}
