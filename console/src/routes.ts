/**
 * The address bar as state: which page, with which parameters, query and fragment. Every filter, tab and selection lives there, so
 * that a link shows what its sender saw, and going back goes back.
 */
import { computed, signal } from '@preact/signals'

/** Where the service stands: what comes before every address of ours. The page carries it, because a proxy may have put a prefix there. */
function readMeta(name: string): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? ''
}

export const BASE = readMeta('atelier-base')
/** Names the build that this page was made of. */
export const BUILD = readMeta('atelier-build')

const ROOT = `${BASE}/console`

interface Place {
  /** Below the console: `/`, `/jobs`, `/jobs/{id}`. */
  readonly path: string
  readonly query: URLSearchParams
  /** Without the mark. */
  readonly hash: string
}

function readPlace(): Place {
  const { pathname, search, hash } = window.location
  const path = pathname.startsWith(ROOT) ? pathname.slice(ROOT.length) : ''
  return {
    path: path === '' ? '/' : path.replace(/(.)\/$/, '$1'),
    query: new URLSearchParams(search),
    hash: hash.slice(1),
  }
}

const place = signal<Place>(readPlace())

export const path = computed(() => place.value.path)
export const query = computed(() => place.value.query)
export const hash = computed(() => place.value.hash)

/** `to` is below the console: `/jobs?status=failed`. */
export function hrefOf(to: string): string {
  return ROOT + to
}

export function navigate(to: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  const href = hrefOf(to)
  if (href === window.location.pathname + window.location.search + window.location.hash) return
  if (replace) history.replaceState(null, '', href)
  else history.pushState(null, '', href)
  const before = place.value.path
  place.value = readPlace()
  if (!replace && before !== place.value.path) window.scrollTo(0, 0)
}

/** Changes single parameters of the present address; null takes one away. */
export function setQuery(
  changes: Readonly<Record<string, string | null>>,
  options?: { readonly replace?: boolean },
): void {
  const next = new URLSearchParams(place.value.query)
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') next.delete(name)
    else next.set(name, value)
  }
  const text = next.toString()
  const { hash: fragment } = place.value
  navigate(place.value.path + (text === '' ? '' : `?${text}`) + (fragment === '' ? '' : `#${fragment}`), options)
}

export function setHash(fragment: string): void {
  const text = place.value.query.toString()
  navigate(`${place.value.path}${text === '' ? '' : `?${text}`}${fragment === '' ? '' : `#${fragment}`}`, {
    replace: true,
  })
}

/** The parameters of the first pattern (`/jobs/:id`) that fits; null: none does. */
export function match(pattern: string, at: string): Readonly<Record<string, string>> | null {
  const [wanted, found] = [pattern.split('/'), at.split('/')]
  if (wanted.length !== found.length) return null
  const parameters: Record<string, string> = {}
  for (const [index, part] of wanted.entries()) {
    if (part.startsWith(':')) parameters[part.slice(1)] = decode(found[index])
    else if (part !== found[index]) return null
  }
  return parameters
}

/** Addresses are typed and cut by people: what is not well written stays as it is. */
export function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Links inside the console change the address without loading the page anew; keys that open tabs keep their meaning. */
function onClick(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return
  const link = event.target instanceof Element ? event.target.closest('a') : null
  if (link === null || link.target !== '' || link.hasAttribute('download')) return
  const url = new URL(link.href, window.location.href)
  const isOurs = url.origin === window.location.origin && (url.pathname === ROOT || url.pathname.startsWith(`${ROOT}/`))
  if (!isOurs || url.pathname.startsWith(`${ROOT}/v1/`) || url.pathname.startsWith(`${ROOT}/files/`)) return
  event.preventDefault()
  navigate(url.pathname.slice(ROOT.length) + url.search + url.hash)
}

export function followAddress(): void {
  window.addEventListener('popstate', () => {
    place.value = readPlace()
  })
  document.addEventListener('click', onClick)
}
