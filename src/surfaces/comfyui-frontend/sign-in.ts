/**
 * Signing in to ComfyUI's editor. Its page sends no credential of its own, so the browser keeps a session as it does for the console. An
 * operator's token opens nothing here.
 */

import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { SignIn } from '../../domain/accounts/sign-in.ts'
import { ServiceError } from '../../domain/errors.ts'
import { readBodyBytes } from '../kit/bodies/json-body.ts'
import { isLoopbackName } from '../kit/guards/addresses.ts'
import type { Gate, ServiceAddress } from '../kit/guards/gate.ts'
import { needs, PUBLIC_PAGE, serviceAddressOf } from '../kit/guards/routes.ts'
import { peekSession, readEditorSession, writeSession } from '../kit/guards/session-cookie.ts'

interface SignInDeps {
  readonly gate: Gate
  readonly signIn: SignIn
}

const MAX_BODY_BYTES = 16_384
const CREDENTIAL_MAX_LENGTH = 12_000

export function registerSignIn(app: FastifyInstance, { gate, signIn }: SignInDeps): void {
  app.get('/sign-in', PUBLIC_PAGE, async (request, reply) => {
    if (!gate.hasCredentials) return toEditor(request, reply)
    const text = peekSession(request.raw, serviceAddressOf(request), 'account')
    const isSignedIn = text !== null && (await signIn.openAccount(text)) !== null
    return send(request, reply, { isSignedIn, refusal: null })
  })

  app.post('/sign-in', needs('public'), async (request, reply) => {
    try {
      const { role, session } = await signIn.begin(await readCredential(request), gate.callerAddressOf(request.raw))
      if (role !== 'account') throw new ServiceError('unauthorized', 'this token is for the console of operators')
      reply.header('Set-Cookie', writeSession(serviceAddressOf(request), 'account', session.text))
      return toEditor(request, reply)
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      return refuse(request, reply, error)
    }
  })

  app.post('/sign-out', needs('public'), async (request, reply) => {
    const address = serviceAddressOf(request)
    const text = readEditorSession(request.raw, address)
    if (text !== null) await signIn.end('account', text)
    return reply
      .header('Set-Cookie', writeSession(address, 'account', null))
      .redirect(`${address.mountPrefix}/sign-in`, 303)
  })
}

/**
 * Answers in place of the editor's page where its reader must sign in first; null: nothing stands in the way. A session that is in use
 * lives on.
 */
export async function answerStranger(
  request: FastifyRequest,
  reply: FastifyReply,
  { gate, signIn }: SignInDeps,
): Promise<FastifyReply | null> {
  if (!gate.hasCredentials) return null
  const address = serviceAddressOf(request)
  const text = peekSession(request.raw, address, 'account')
  const session = text === null ? null : await signIn.openAccount(text)
  if (session !== null) {
    const renewed = session.renew()
    if (renewed !== null) reply.header('Set-Cookie', writeSession(address, 'account', renewed.text))
    return null
  }
  if (request.headers['sec-fetch-site'] === 'cross-site') return reply.headers(SIGN_IN_HEADERS).send(renderSecondTry())
  return reply.header('Cache-Control', 'no-store').redirect(`${address.mountPrefix}/sign-in`, 302)
}

async function readCredential(request: FastifyRequest): Promise<string> {
  const bytes = await readBodyBytes(request.raw, { maxBytes: MAX_BODY_BYTES })
  const credential = new URLSearchParams(bytes.toString('utf8')).get('credential')?.trim() ?? ''
  if (credential === '' || credential.length > CREDENTIAL_MAX_LENGTH)
    throw new ServiceError('invalid_request', 'give the text of a key or token')
  return credential
}

/** Refusals that a person can do something about; their sentences are ours and hold nothing of what was typed. */
const STATUS: Readonly<Partial<Record<ServiceError['refusal'], number>>> = {
  unauthorized: 401,
  invalid_request: 400,
  payload_too_large: 413,
  rate_limited: 429,
}

function refuse(request: FastifyRequest, reply: FastifyReply, error: ServiceError): FastifyReply {
  const status = STATUS[error.refusal]
  if (status === undefined) throw error
  if (error.retryAfterSeconds !== null) reply.header('Retry-After', String(error.retryAfterSeconds))
  return send(request, reply.code(status), { isSignedIn: false, refusal: error.message })
}

function send(
  request: FastifyRequest,
  reply: FastifyReply,
  shown: { readonly isSignedIn: boolean; readonly refusal: string | null },
): FastifyReply {
  const isInsecure = isReadable(serviceAddressOf(request))
  return reply.headers(SIGN_IN_HEADERS).send(renderSignIn({ ...shown, isInsecure }))
}

function isReadable({ origin, host }: ServiceAddress): boolean {
  return origin.startsWith('http:') && !isLoopbackName(host.name)
}

function toEditor(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return reply.redirect(`${serviceAddressOf(request).mountPrefix}/`, 303)
}

// The form with which a person signs in before ComfyUI's editor opens: plain HTML without any script.

const STYLE = `:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{display:grid;place-items:center;min-height:100vh;margin:0}
main{width:min(24rem,90vw)}
label,input,button{display:block;width:100%;box-sizing:border-box;font:inherit}
input,button{margin:.5rem 0 1rem;padding:.5rem}
[role=alert]{color:light-dark(#a00,#f99)}`

const STYLE_DIGEST = createHash('sha256').update(STYLE).digest('base64')
const POLICY = `default-src 'none'; style-src 'sha256-${STYLE_DIGEST}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`

/** Without a referrer policy of its own a browser would not name the origin of the form. */
const SIGN_IN_HEADERS = {
  'Content-Security-Policy': POLICY,
  'Content-Type': 'text/html; charset=utf-8',
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'same-origin',
} as const

interface SignInPage {
  readonly isSignedIn: boolean
  /** Why the last try was refused: one of our own sentences. */
  readonly refusal: string | null
  /** What is typed travels over the network as it is. */
  readonly isInsecure: boolean
}

function renderSignIn({ isSignedIn, refusal, isInsecure }: SignInPage): string {
  return page('Sign in', [
    ...(refusal === null ? [] : [`<p role="alert">${refusal}</p>`]),
    ...(isInsecure ? ['<p>This address is not encrypted: others in the network can read what you type.</p>'] : []),
    ...(isSignedIn ? SIGNED_IN : FORM),
  ])
}

const FORM = [
  '<form method="post" action="sign-in">',
  '<label for="credential">API key or token</label>',
  '<input id="credential" name="credential" type="password" autocomplete="current-password" required autofocus>',
  '<button>Sign in</button>',
  '</form>',
]

const SIGNED_IN = [
  '<p>You are signed in. <a href="./">Open the editor</a></p>',
  '<form method="post" action="sign-out"><button>Sign out</button></form>',
]

/**
 * For people who follow a link of another site: the browser sends no cookie with that request. It does with the next one, which
 * this page makes.
 */
function renderSecondTry(): string {
  return page(
    'Opening the editor',
    ['<p><a href="./">Open the editor</a></p>'],
    '<meta http-equiv="refresh" content="0">',
  )
}

function page(title: string, body: readonly string[], head = ''): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Atelier</title>
<style>${STYLE}</style>
${head}
</head>
<body>
<main>
<h1>${title}</h1>
${body.join('\n')}
</main>
</body>
</html>
`
}
