/** The form with which a person signs in before ComfyUI's editor opens: plain HTML without any script. */
import { createHash } from 'node:crypto'

const STYLE = `:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{display:grid;place-items:center;min-height:100vh;margin:0}
main{width:min(24rem,90vw)}
label,input,button{display:block;width:100%;box-sizing:border-box;font:inherit}
input,button{margin:.5rem 0 1rem;padding:.5rem}
[role=alert]{color:light-dark(#a00,#f99)}`

const STYLE_DIGEST = createHash('sha256').update(STYLE).digest('base64')
const POLICY = `default-src 'none'; style-src 'sha256-${STYLE_DIGEST}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`

/** Without a referrer policy of its own a browser would not name the origin of the form. */
export const SIGN_IN_HEADERS = {
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

export function renderSignIn({ isSignedIn, refusal, isInsecure }: SignInPage): string {
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
export function renderSecondTry(): string {
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
