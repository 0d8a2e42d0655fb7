/** A key or token, once. Its text is kept nowhere: the field is emptied before the answer is known. */
import { useRef, useState } from 'preact/hooks'
import { ApiError } from '../../api/client.ts'
import { ErrorBox } from '../../components/state.tsx'
import { navigate, path, query } from '../../routes.ts'
import { session, signIn } from '../../state/session.ts'

/** Where the credential would travel in the clear. */
function isExposed(): boolean {
  const { protocol, hostname } = window.location
  return protocol === 'http:' && !['localhost', '127.0.0.1', '[::1]'].includes(hostname)
}

/** The service took the credential and the browser did not keep its cookie. */
function cookieRefused(): ApiError {
  return new ApiError('the credential is right, but this browser did not keep the cookie: allow cookies of this site', {
    ...{ status: 200, code: 'cookie_refused', details: null, requestId: null, retryAfterSeconds: null },
  })
}

function toPlace(asked: string | null, role: 'account' | 'operator'): string {
  if (asked?.startsWith('/') === true && asked !== '/') return asked
  return role === 'operator' ? '/operator' : '/'
}

export function SignInPage() {
  const field = useRef<HTMLInputElement>(null)
  const [error, setError] = useState<ApiError | null>(null)
  const [isBusy, setBusy] = useState(false)

  async function submit(event: Event): Promise<void> {
    event.preventDefault()
    const input = field.current
    const credential = input?.value.trim() ?? ''
    if (input === null || credential === '' || isBusy) return
    input.value = ''
    setBusy(true)
    try {
      const role = await signIn(credential)
      if (session.value?.signed_in !== true && session.value?.operator !== true) throw cookieRefused()
      // The form stands at the address that was asked for: it stays, and now shows what was asked.
      const hasAsked = path.value !== '/sign-in' && path.value !== '/'
      if (!hasAsked) navigate(toPlace(query.value.get('to'), role), { replace: true })
    } catch (refused) {
      setError(refused as ApiError)
      setBusy(false)
      input.focus()
    }
  }

  const mayBeOperator = session.value?.may_become_operator === true
  return (
    <main class="lone">
      <h1>Sign in</h1>
      <form class="stack" onSubmit={(event) => void submit(event)}>
        <label for="credential">{mayBeOperator ? 'API key, token or admin token' : 'API key or token'}</label>
        <input id="credential" ref={field} type="password" autocomplete="off" spellcheck={false} required />
        {isExposed() && (
          <p class="warning">This page came over plain http: whoever listens on the way can read what you type here.</p>
        )}
        <button type="submit" class="button primary" disabled={isBusy}>
          Sign in
        </button>
      </form>
      {error !== null && <ErrorBox error={error} />}
    </main>
  )
}
