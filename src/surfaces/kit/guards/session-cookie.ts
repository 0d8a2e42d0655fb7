/**
 * The cookie of a session: its name, its flags, and for which requests it counts. A browser sends cookies with every request to our
 * host, also with those that a page of another port or site makes. So a cookie counts only where the browser itself says that one of
 * our own pages asks, and a request that changes something must moreover carry a header that no other page can add.
 */
import type { IncomingMessage } from 'node:http'
import type { SessionRole } from '../../../domain/accounts/sessions.ts'

/** A page of another origin cannot send it without being asked by CORS first, which is never granted for it. */
const CONSOLE_HEADER = 'x-atelier-console'

/** The address of this service as the browser used it. */
interface OwnAddress {
  readonly origin: string
}

const NAMES: Readonly<Record<SessionRole, string>> = { account: 'atelier', operator: 'atelier-operator' }
const SAFE_METHODS = ['GET', 'HEAD']
// Browsers keep at most 4 KiB for one cookie.
const MAX_TEXT = 4096

/** The text of the session that this request may use; null: it carries none, or may not use it. */
export function readSession(request: IncomingMessage, address: OwnAddress, role: SessionRole): string | null {
  return isOwnPage(request, address) && (isSafe(request) || hasMark(request.headers))
    ? peekSession(request, address, role)
    : null
}

/**
 * The same for ComfyUI's editor, which cannot add the header. Its page has an origin of its own where nothing else is served, and a
 * browser names the origin of every request that changes something.
 */
export function readEditorSession(request: IncomingMessage, address: OwnAddress): string | null {
  return isOwnPage(request, address) ? peekSession(request, address, 'account') : null
}

/** Whatever page asks: only to choose what a person is shown, never to do or tell anything. */
export function peekSession({ headers }: IncomingMessage, address: OwnAddress, role: SessionRole): string | null {
  const text = readCookie(headers.cookie, nameFor(address, role))
  return text !== null && text.length <= MAX_TEXT ? text : null
}

/** The value of `Set-Cookie`. `text` null: the browser forgets the session. */
export function writeSession(address: OwnAddress, role: SessionRole, text: string | null): string {
  const secure = isSecure(address) ? '; Secure' : ''
  // Without a lifetime: the browser forgets it when it ends, and the session itself knows how long it is good.
  const life = text === null ? '; Max-Age=0' : ''
  return `${nameFor(address, role)}=${text ?? ''}; Path=/; HttpOnly; SameSite=Strict${secure}${life}`
}

/** A browser accepts the prefixed name only with `Secure`, for this very host and the whole of it: nobody else can set it. */
function nameFor(address: OwnAddress, role: SessionRole): string {
  return isSecure(address) ? `__Host-${NAMES[role]}` : NAMES[role]
}

function isSecure({ origin }: OwnAddress): boolean {
  return origin.startsWith('https:')
}

function isSafe({ method = 'GET' }: IncomingMessage): boolean {
  return SAFE_METHODS.includes(method)
}

function isOwnPage(request: IncomingMessage, address: OwnAddress): boolean {
  const { origin, 'sec-fetch-site': site } = request.headers
  if (!isSafe(request)) return (site === undefined || site === 'same-origin') && origin === address.origin
  if (site !== undefined) return site === 'same-origin'
  // Browsers leave the header out on plain http beyond loopback. There they name the origin where it is another one.
  return origin === undefined || origin === address.origin
}

function hasMark(headers: IncomingMessage['headers']): boolean {
  return headers[CONSOLE_HEADER] === '1'
}

function readCookie(header: string | undefined, name: string): string | null {
  if (header === undefined) return null
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=')
    if (equals !== -1 && pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim()
  }
  return null
}
